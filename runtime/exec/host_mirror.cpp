#include "exec/host_mirror.h"

#include <algorithm>

#include "base/error.h"
#include "ir/memory.h"

namespace st {

void HostMirror::find() {
  if (memory_) return;
  ranges_.clear();
  written_.clear();
  const auto range_of = [](const Operand& operand) { return Range{operand.data, operand.elements() * bytes_of(operand.dtype), nullptr}; };
  std::vector<Range> all;
  for (const auto& operands : {call_.in, call_.out, call_.reads, call_.writes})
    for (const Operand& operand : operands) all.push_back(range_of(operand));
  std::ranges::sort(all, {}, &Range::begin);
  for (const Range& range : all) {
    if (!range.begin || range.bytes == 0) continue;
    if (!ranges_.empty() && range.begin - ranges_.back().begin <= ranges_.back().bytes)
      ranges_.back().bytes = std::max(ranges_.back().bytes, range.begin - ranges_.back().begin + range.bytes);
    else
      ranges_.push_back(range);
  }
  bytes_ = 0;
  for (const Range& range : ranges_) bytes_ += align_up(range.bytes);
  memory_ = backend_.allocate_pinned(bytes_);
  std::byte* here = memory_->data();
  for (Range& range : ranges_) {
    range.here = here;
    here += align_up(range.bytes);
  }
  for (const auto& operands : {call_.out, call_.writes})
    for (const Operand& operand : operands) {
      const Range range = range_of(operand);
      if (range.begin && range.bytes > 0) written_.push_back({range.begin, range.bytes, at(operand)});
    }
}

std::byte* HostMirror::at(const Operand& operand) {
  if (operand.elements() == 0 || !operand.data) return nullptr;
  find();
  const auto after = std::ranges::upper_bound(ranges_, operand.data, {}, &Range::begin);
  require(after != ranges_.begin(), Code::internal, "exchange: an operand that is not in its host's copies");
  const Range& range = *std::prev(after);
  return range.here + (operand.data - range.begin);
}

void HostMirror::download() {
  find();
  for (const Range& range : ranges_) backend_.to_host(range.here, range.begin, range.bytes);
}

void HostMirror::upload() {
  find();
  for (const Range& range : written_) backend_.to_device(range.begin, range.here, range.bytes);
}

}  // namespace st
