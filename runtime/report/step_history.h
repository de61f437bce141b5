// The steps of a run for its report: those made in this process and earlier ones from its log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "report/metrics.h"

namespace st {

/// A long run keeps the first report and every second, fourth, ... one, as many as a chart shows, so that memory does not grow with the
/// number of steps. A step allocates nothing.
class StepHistory {
 public:
  StepHistory() { kept_.reserve(kMost); }

  void add(const StepReport& report);
  /// Adds the lines of a log, in step order; ignores steps that are not before the first one here, and lines of other kinds.
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
