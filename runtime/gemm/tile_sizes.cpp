#include "gemm/tile_sizes.h"

#include <algorithm>

namespace st {

TileSizes sizes_of(const TileSchedule& s) {
  return {s.mr, s.nr, s.mc, s.nc, s.kc, s.block_m, s.block_n, static_cast<int64_t>(s.order), static_cast<int64_t>(s.b)};
}

std::optional<TileSchedule> schedule_of(std::span<const int64_t> sizes) {
  constexpr int64_t kLargest = int64_t{1} << 20;
  if (sizes.size() != std::tuple_size_v<TileSizes>) return std::nullopt;
  const bool sane = std::ranges::all_of(sizes.first(7), [](int64_t size) { return size >= 0 && size <= kLargest; });
  if (!sane || sizes[7] < 0 || sizes[7] > static_cast<int64_t>(LoopOrder::n_m_k) || sizes[8] < 0 ||
      sizes[8] > static_cast<int64_t>(Packing::in_place))
    return std::nullopt;
  return TileSchedule{.mr = sizes[0],
                      .nr = sizes[1],
                      .mc = sizes[2],
                      .nc = sizes[3],
                      .kc = sizes[4],
                      .block_m = sizes[5],
                      .block_n = sizes[6],
                      .order = static_cast<LoopOrder>(sizes[7]),
                      .b = static_cast<Packing>(sizes[8])};
}

TileSchedule wish_of_sizes(std::span<const int64_t> sizes) { return schedule_of(sizes).value_or(TileSchedule{}); }

}  // namespace st
