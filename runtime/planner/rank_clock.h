// When the instructions of a rank's step ended, and how long its messages were on their way.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace st {

/// A rank's instructions in the order in which it ran them. Times are seconds of one clock for all ranks.
struct RankClock {
  double began = 0;
  std::vector<Instruction> order;
  std::vector<double> ended;

  double began_at(size_t i) const { return i == 0 ? began : ended[i - 1]; }
  double seconds(size_t i) const { return ended[i] - began_at(i); }
};

struct MessageTime {
  size_t receive;  // the index in the receiver's order
  double seconds;
};

/// The messages that a rank waited for, each from the end of its send: before it, the receiver waits for what the other stage computes. One
/// that had come before is left out. `plans` and `clocks` are those of all ranks.
std::vector<MessageTime> messages_waited_for(std::span<const Plan* const> plans, std::span<const RankClock> clocks, size_t rank);

}  // namespace st
