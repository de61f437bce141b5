// A tile schedule as a list of numbers, for a node's attribute or a line of the tuning cache.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "gemm/schedule.h"

namespace st {

/// mr, nr, mc, nc, kc, block_m, block_n, order, packing.
using TileSizes = std::array<int64_t, 9>;
TileSizes sizes_of(const TileSchedule& schedule);

/// Nothing unless this is such a list: wrong length, a size below 0 or above 2^20, an unknown order or packing.
std::optional<TileSchedule> schedule_of(std::span<const int64_t> sizes);
/// The same for a wish; an invalid list gives an empty wish.
TileSchedule wish_of_sizes(std::span<const int64_t> sizes);

}  // namespace st
