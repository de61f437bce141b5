#include "base/host_view.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"

namespace st {
namespace {

template <class T, class IsNan>
int64_t first_nan_of(const HostView& view, const IsNan& is_nan) {
  int64_t at = 0, found = -1;
  if (view.is_plain()) {  // the usual case, which a compiler makes fast
    const auto* values = static_cast<const T*>(view.data);
    const int64_t count = view.shape.elements();
    while (at < count && !is_nan(values[at])) ++at;
    return at < count ? at : -1;
  }
  each_element(view, [&](const std::byte* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    if (found < 0 && is_nan(value)) found = at;
    ++at;
  });
  return found;
}

/// Where the elements of a nested view lie.
class Places {
 public:
  explicit Places(const HostView& view) : first_(reinterpret_cast<uintptr_t>(view.data)), width_(bytes_of(view.dtype)) {
    for (int32_t d = 0; d < view.shape.rank(); ++d)
      if (view.shape[d] > 1) axes_[count_++] = {view.strides[static_cast<size_t>(d)] * width_, view.shape[d]};
    std::sort(axes_.begin(), axes_.begin() + count_, std::greater());
  }
  /// Whether an element has a byte of the `bytes` at `address`: the last one that begins before their end must reach them.
  bool hold(uintptr_t address, int64_t bytes) const {
    int64_t left = static_cast<int64_t>(address - first_) + bytes - 1;
    if (left < 0) return false;
    for (ptrdiff_t i = 0; i < count_; ++i) left -= std::min(left / axes_[i].first, axes_[i].second - 1) * axes_[i].first;
    return left < bytes - 1 + width_;
  }

 private:
  uintptr_t first_;
  int64_t width_;
  std::array<std::pair<int64_t, int64_t>, kMaxDims> axes_;  // stride in bytes, elements; the longest stride first
  ptrdiff_t count_ = 0;
};

}  // namespace

std::array<int64_t, kMaxDims> row_major(const Shape& shape) {
  std::array<int64_t, kMaxDims> strides{};
  int64_t stride = 1;
  for (int32_t d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

HostView plain_view(std::string_view name, DType dtype, const Shape& shape, const void* data) {
  return {name, dtype, shape, row_major(shape), const_cast<void*>(data)};
}

bool HostView::is_plain() const {
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes_of(dtype)) != 0) return false;
  int64_t stride = 1;
  for (int32_t d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[static_cast<size_t>(d)] != stride) return false;  // of one element the stride does not matter
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return true;
}

int64_t extent_bytes(DType dtype, const Shape& shape, const std::array<int64_t, kMaxDims>& strides) {
  int64_t last = 1, bytes = 0;
  for (int32_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(shape[d] - 1, strides[static_cast<size_t>(d)], &step) || __builtin_add_overflow(last, step, &last))
      return -1;
  }
  return __builtin_mul_overflow(last, bytes_of(dtype), &bytes) ? -1 : bytes;
}

bool is_nested(const Shape& shape, const std::array<int64_t, kMaxDims>& strides) {
  std::array<std::pair<int64_t, int64_t>, kMaxDims> axes;  // stride, elements; the shortest stride first
  size_t count = 0;
  for (int32_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return true;
    if (shape[d] == 1) continue;
    size_t place = count++;
    const std::pair axis{strides[static_cast<size_t>(d)], shape[d]};
    for (; place > 0 && axes[place - 1] > axis; --place) axes[place] = axes[place - 1];
    axes[place] = axis;
  }
  int64_t reach = 0;  // the last element of the axes so far
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].first <= reach) return false;
    reach += axes[i].first * (axes[i].second - 1);
  }
  return true;
}

bool share_memory(const HostView& a, const HostView& b) {
  const auto extent = [](const HostView& v) { return static_cast<uintptr_t>(extent_bytes(v.dtype, v.shape, v.strides)); };
  const auto at = reinterpret_cast<uintptr_t>(a.data), other = reinterpret_cast<uintptr_t>(b.data);
  if (at + extent(a) <= other || other + extent(b) <= at || extent(a) == 0 || extent(b) == 0) return false;
  if (a.is_plain() && b.is_plain()) return true;
  const Places places(a);
  bool shared = false;
  each_element(b, [&](const std::byte* place) { shared = shared || places.hold(reinterpret_cast<uintptr_t>(place), bytes_of(b.dtype)); });
  return shared;
}

void require_apart(std::span<HostView> views, std::string_view call) {
  const auto begin = [](const HostView& view) { return reinterpret_cast<uintptr_t>(view.data); };
  const auto end = [&](const HostView& view) {
    return begin(view) + static_cast<uintptr_t>(extent_bytes(view.dtype, view.shape, view.strides));
  };
  std::ranges::sort(views, {}, begin);
  for (size_t i = 0; i < views.size(); ++i)
    for (size_t j = i + 1; j < views.size() && begin(views[j]) < end(views[i]); ++j)
      check(!share_memory(views[i], views[j]), call, ": \"", views[i].name, "\" and \"", views[j].name,
            "\" share memory, which would be changed twice; give each its own memory");
}

void gather(const HostView& from, std::byte* to) {
  const auto width = static_cast<size_t>(bytes_of(from.dtype));
  if (from.is_plain()) {
    if (from.bytes() > 0) std::memcpy(to, from.data, static_cast<size_t>(from.bytes()));
    return;
  }
  each_element(from, [&](const std::byte* place) {
    std::memcpy(to, place, width);
    to += width;
  });
}

void scatter(const std::byte* from, const HostView& to) {
  const auto width = static_cast<size_t>(bytes_of(to.dtype));
  if (to.is_plain()) {
    if (to.bytes() > 0) std::memcpy(to.data, from, static_cast<size_t>(to.bytes()));
    return;
  }
  each_element(to, [&](std::byte* place) {
    std::memcpy(place, from, width);
    from += width;
  });
}

const void* compact_data(const HostView& view, Memory& room, const std::shared_ptr<MemorySource>& memory) {
  if (view.is_plain()) return view.data;
  if (room.size() < view.bytes()) room = Memory(view.bytes(), memory, MemoryRole::inputs);
  gather(view, room.data());
  return room.data();
}

int64_t first_nan(const HostView& view) {
  switch (view.dtype) {
    case DType::f32:
      return first_nan_of<float>(view, [](float v) { return std::isnan(v); });
    case DType::f64:
      return first_nan_of<double>(view, [](double v) { return std::isnan(v); });
    case DType::bf16:  // by the bits of infinity: NaN is beyond it
      return first_nan_of<uint16_t>(view, [](uint16_t v) { return (v & 0x7FFF) > 0x7F80; });
    case DType::f16:
      return first_nan_of<uint16_t>(view, [](uint16_t v) { return (v & 0x7FFF) > 0x7C00; });
    default:
      return -1;
  }
}

}  // namespace st
