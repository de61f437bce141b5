#include "strided_range.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/element_conversion.h"

namespace st::capi {
namespace {

/// Iterates over elements in row-major order.
class Walk {
 public:
  Walk(const HostView& view, int64_t first) : view_(view), place_(static_cast<std::byte*>(view.data)) {
    for (int32_t d = view.shape.rank() - 1; d >= 0; --d) {
      const auto axis = static_cast<size_t>(d);
      at_[axis] = first % view.shape[d];
      first /= view.shape[d];
      if (at_[axis] > 0) place_ += at_[axis] * step(axis);
    }
  }

  std::byte* place() const { return place_; }
  void next() {
    for (int32_t d = view_.shape.rank() - 1; d >= 0; --d) {
      const auto axis = static_cast<size_t>(d);
      if (view_.shape[d] == 1) continue;  // its stride is unused and may be any number
      place_ += step(axis);
      if (++at_[axis] < view_.shape[d]) return;
      place_ -= step(axis) * view_.shape[d];
      at_[axis] = 0;
    }
  }

 private:
  int64_t step(size_t axis) const { return view_.strides[axis] * bytes_of(view_.dtype); }

  const HostView& view_;
  std::byte* place_;
  std::array<int64_t, kMaxDims> at_{};
};

}  // namespace

bool is_compact(const HostView& view) {
  int64_t stride = 1;
  for (int32_t d = view.shape.rank() - 1; d >= 0; --d) {
    if (view.shape[d] != 1 && view.strides[static_cast<size_t>(d)] != stride) return false;
    stride *= std::max<int64_t>(view.shape[d], 1);
  }
  return true;
}

void copy_range(const HostView& from, int64_t first, std::span<std::byte> to) {
  if (to.empty()) return;
  if (is_compact(from)) {
    std::memcpy(to.data(), static_cast<const std::byte*>(from.data) + first, to.size());
    return;
  }
  const auto width = static_cast<size_t>(bytes_of(from.dtype));
  Walk walk(from, first / static_cast<int64_t>(width));
  for (size_t i = 0; i < to.size(); i += width, walk.next()) std::memcpy(to.data() + i, walk.place(), width);
}

void fill_range(const HostView& to, int64_t first, DType as, std::span<const std::byte> from) {
  if (from.empty()) return;
  const auto width = static_cast<size_t>(bytes_of(as));
  Walk walk(to, first);
  for (size_t i = 0; i < from.size(); i += width, walk.next()) {
    if (as == to.dtype)
      std::memcpy(walk.place(), from.data() + i, width);
    else
      convert_element(as, from.data() + i, to.dtype, walk.place());
  }
}

}  // namespace st::capi
