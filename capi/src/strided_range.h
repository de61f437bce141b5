// Some of a view's elements in row-major order, whatever its strides: what saves copy and loads fill, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "train/host_view.h"

namespace st::capi {

/// In row-major order without gaps, of any alignment.
bool is_compact(const HostView& view);

/// Fills `to` with the elements from byte `first` of the row-major array on; both are whole elements.
void copy_range(const HostView& from, int64_t first, std::span<std::byte> to);

/// Sets the elements from number `first` on to those in `from`, which are of dtype `as`: the view's, or both are floating. Under a
/// FloatMode.
void fill_range(const HostView& to, int64_t first, DType as, std::span<const std::byte> from);

}  // namespace st::capi
