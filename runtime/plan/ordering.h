// Proves that a plan's streams and waits order all accesses to the same bytes, one of which writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/accesses.h"

namespace st {

/// Two instructions that access the same bytes, one of them writing, and may run at the same time or in either order.
struct Unordered {
  static constexpr size_t kHost = static_cast<size_t>(-1);  // the host, between two steps or micro-batches
  size_t first = 0, second = 0;                             // in the order in which they are issued; kHost
  bool in_next_step = false;                                // the second one is of the step after the first one's
  MemoryAccess before, after;                               // the accesses of both: the same bytes
  bool operator==(const Unordered&) const = default;
};

/// A gradient of a use that is sent to a stage before the weight has come from it. Then the other stage's proof does not hold
/// (ordering_of).
struct BrokenPromise {
  size_t send = 0, receive = 0;
  bool operator==(const BrokenPromise&) const = default;
};

struct Ordering {
  int32_t streams = 1;            // that have work: the computing thread, the exchange queue, copies, each link over which the stage sends
  int64_t waits = 0;              // awaits and releases of a step, of copies too
  int64_t conflicts = 0;          // pairs of accesses that must be ordered, of a step; only neighbours, which imply the other pairs
  int64_t across = 0;             // those between two streams
  std::vector<Unordered> faults;  // by second instruction, each pair once
  std::vector<BrokenPromise> broken;
  bool holds() const { return faults.empty() && broken.empty(); }
};

/// The order of two steps in succession, of a plan as the executor runs it:
/// - the computing thread issues the instructions one after another, and runs kernels, collectives that are not posted, and receives
/// - the exchange queue runs posted collectives one after another, each after what was issued before it
/// - a link reads the messages sent over it one after another, each after what was issued before it (on a device that stages share: the
///   receiver's stream does)
/// - copies of what is in the host's memory run one after another, each after what was issued before it
/// - an await waits for its collective, and a collective along the data axis that is not posted for all posted ones
/// - a release and a send wait for the message that this send last took from the same buffer
/// - the host writes control slots before a step, and reads what lasts after it
/// Stages also rely on each other: a use's gradient comes from a stage after the weights that were sent to it in this step have arrived,
/// and weights come from a stage after the gradients of uses that were sent to it in earlier steps have arrived. Each plan's proof checks
/// the own part of this promise. `without`: the index of an await (of a copy too) or release that is left out.
Ordering ordering_of(const Plan& plan, std::optional<size_t> without = {});

/// The waits without which, one at a time, the order still holds: what another wait implies. Takes an ordering_of() for each.
std::vector<size_t> redundant_waits(const Plan& plan);

/// A sentence that names both instructions, the bytes, what each does with them, and the wait that would order them.
std::string text_of(const Plan& plan, const Unordered& fault);
std::string text_of(const Plan& plan, const BrokenPromise& broken);

/// One line, or one more for each fault (--explain).
std::string print_ordering(const Plan& plan);

}  // namespace st
