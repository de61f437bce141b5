// A range of a view's elements in row-major order, for any strides: saves copy and loads fill a view in ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/host_view.h"

namespace st::capi {

/// Contiguous in row-major order, of any alignment.
bool is_compact(const HostView& view);

/// Fills `to` with the elements that start at byte `first` of the row-major array; both are whole elements.
void copy_range(const HostView& from, int64_t first, std::span<std::byte> to);

/// Sets the elements from number `first` on to those in `from`. Their dtype `as` is the view's, or both are floating. Call under a
/// FloatMode.
void fill_range(const HostView& to, int64_t first, DType as, std::span<const std::byte> from);

}  // namespace st::capi
