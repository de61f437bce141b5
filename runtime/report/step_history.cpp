#include "report/step_history.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace st {

void StepHistory::add(const StepReport& report) {
  if (kept_.size() == kMost) {
    stride_ *= 2;
    std::erase_if(kept_, [&](const StepReport& kept) { return !is_kept(kept.step); });
  }
  if (is_kept(report.step)) kept_.push_back(report);
}

void StepHistory::add_earlier(std::string_view log) {
  const int64_t end = kept_.empty() ? std::numeric_limits<int64_t>::max() : kept_.front().step;
  StepHistory all;
  int64_t last = 0;
  for (size_t begin = 0; begin < log.size();) {
    const std::string_view line = log.substr(begin, log.find('\n', begin) - begin);
    begin += line.size() + 1;
    const auto step = step_of_line(line);
    if (!step || *step <= last || *step >= end) continue;
    last = *step;
    if (!all.is_kept(*step)) continue;  // most of a long log: they are not read
    if (const auto report = report_of_line(line)) all.add(*report);
  }
  for (const StepReport& report : kept_) all.add(report);
  *this = std::move(all);
}

void StepHistory::forget_after(int64_t step) {
  std::erase_if(kept_, [&](const StepReport& report) { return report.step > step; });
}

}  // namespace st
