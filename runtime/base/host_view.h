// A strided view of a host's array, for batches, weights and predictions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "base/memory_source.h"
#include "base/shape.h"

namespace st {

/// Borrowed. Functions that only read never write through `data`.
struct HostView {
  std::string_view name;
  DType dtype = DType::f32;
  Shape shape;
  std::array<int64_t, kMaxDims> strides{};  // in elements, not negative
  void* data = nullptr;
  /// The array is in the memory of the context's device, row-major without gaps, and `data` is an address there (host_order.h), which the
  /// functions below must not follow.
  bool is_on_device = false;

  /// Whether it is row-major without gaps and aligned to its elements, so that kernels can read it in place.
  bool is_plain() const;
  int64_t bytes() const { return shape.elements() * bytes_of(dtype); }
};

/// Row-major without gaps.
HostView plain_view(std::string_view name, DType dtype, const Shape& shape, const void* data);

/// The strides of a row-major array without gaps.
std::array<int64_t, kMaxDims> row_major(const Shape& shape);

/// Bytes from the first element to the end of the last; -1 when that is past int64.
int64_t extent_bytes(DType dtype, const Shape& shape, const std::array<int64_t, kMaxDims>& strides);

/// True if no two elements share an address. Strides that interleave without nesting count as overlapping: no array library makes them, and
/// an exact test would be expensive.
bool is_nested(const Shape& shape, const std::array<int64_t, kMaxDims>& strides);

/// True if some byte belongs to an element of both. The first must be nested.
bool share_memory(const HostView& a, const HostView& b);

/// Throws invalid_argument that names two views which share memory. Sorts `views` by address, so that it compares only neighbours.
void require_apart(std::span<HostView> views, std::string_view call);

/// Copies between a view and row-major memory of the same type.
void gather(const HostView& from, std::byte* to);
void scatter(const std::byte* from, const HostView& to);

/// The view's elements in row-major order: in place if they already are, else copied into `room`, which grows if needed.
const void* compact_data(const HostView& view, Memory& room, const std::shared_ptr<MemorySource>& memory);

/// Index of the first NaN in row-major order; -1: none.
int64_t first_nan(const HostView& view);

/// Calls visit(address) for every element in row-major order.
template <class Visit>
void each_element(const HostView& view, Visit&& visit) {
  const int64_t width = bytes_of(view.dtype), count = view.shape.elements();
  const int32_t rank = view.shape.rank();
  std::array<int64_t, kMaxDims> at{};
  auto* place = static_cast<std::byte*>(view.data);
  for (int64_t i = 0; i < count; ++i) {
    visit(place);
    for (int32_t d = rank - 1; d >= 0; --d) {
      const auto axis = static_cast<size_t>(d);
      if (view.shape[d] == 1) continue;  // its stride has no meaning and may be any number
      place += view.strides[axis] * width;
      if (++at[axis] < view.shape[d]) break;
      place -= view.strides[axis] * width * view.shape[d];
      at[axis] = 0;
    }
  }
}

}  // namespace st
