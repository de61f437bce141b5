// The steps of a run as its report shows them: those that were made here and, before them, those that its log tells of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "train/metrics.h"

namespace st {

/// A long run keeps every second, fourth, ... report and the first, so that any number of steps costs the same memory: a chart shows no
/// more. A step allocates nothing.
class StepHistory {
 public:
  StepHistory() { kept_.reserve(kMost); }

  void add(const StepReport& report);
  /// The lines of a log, in the order of their steps; those of steps that are not before the first one here are passed over, and so are
  /// lines of other kinds.
  void add_earlier(std::string_view log);
  void forget_after(int64_t step);

  const std::vector<StepReport>& steps() const { return kept_; }

 private:
  static constexpr size_t kMost = 512;
  bool is_kept(int64_t step) const { return step == 1 || step % stride_ == 0; }

  std::vector<StepReport> kept_;
  int64_t stride_ = 1;
};

}  // namespace st
