// attention.cuh's formula of 16-bit operands by tensor cores (Dao, "FlashAttention-2", 2023): a block has 64 queries of a head and passes
// over tiles of 64 keys; scores and sums stay in registers. Weights are two numbers of 16 bits each, a rounded one and what rounding has
// left, so that each element of the output is as near as the cpu's, which has weights in fp32, also where values cancel. Values are on
// their way while scores are made, the next keys while values are added.
#pragma once

#include "backend/cuda/attention.cuh"
#include "backend/cuda/half_heads.cuh"

namespace st::cuda {

template <class T, int kWidth>
KERNEL(kHeadThreads, (kWidth == 64 ? 3 : 2))
attend_halves(AttentionShape shape, const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* o, float* lse) {
  using Tile = HeadTile<kWidth>;
  constexpr int kKeys = 64;
  using Row = FragmentRow<kKeys>;
  SHARED(Chunk, q_tile, kHeadRows * Tile::kPerRow);
  SHARED(Chunk, k_tile, kKeys * Tile::kPerRow);
  SHARED(Chunk, v_tile, kKeys * Tile::kPerRow);
  const QueryBlock block(shape, kHeadRows, kWidth);
  const int width = static_cast<int>(shape.width);
  const auto scale = static_cast<float>(shape.scale);
  const int64_t seen_at_all = block.seen(shape);
  const auto read = [&](Chunk* tile, const uint16_t* from, int64_t s0) {
    if (s0 < seen_at_all)
      Tile::template read<kKeys>(tile, from + block.key(shape, s0), shape.key_step(), within(shape.keys - s0, kKeys), width);
    commit_copies();
  };
  Tile::template read<kHeadRows>(q_tile, q + block.query(shape, 0), shape.query_step(), block.queries, width);
  read(k_tile, k, 0);

  Softmax<float> state[2];
  float sums[kWidth / 8][4] = {};
  for (int64_t s0 = 0; s0 < seen_at_all; s0 += kKeys) {
    wait_copies<0>();
    sync_block();
    read(v_tile, v, s0);
    float x[1][kKeys / 8][4], rows[2][Row::kOthersEach], rescale[2];
    Tile::template multiply<T, kKeys>(x, q_tile, k_tile);
    wait_copies<0>();
    sync_block();
    read(k_tile, k, s0 + kKeys);
    split_rows<kKeys>(rows, x);
    UNROLL
    for (int half = 0; half < 2; ++half) {
      const int t = row_of(half);
      const int seen = t < block.queries ? within(shape.seen(block.t0 + t) - s0, within(shape.keys - s0, kKeys)) : 0;
      rescale[half] = soften<Row>(state[half], rows[half], scale, seen);
    }
    uint32_t weights[2][kKeys / kFragment][1][4];
    join_rows<T, kKeys, 2>(weights, rows, {weight_factor(T{}), weight_factor(T{})});
    Tile::template add_weighted<T, kKeys, 2>(sums, weights, v_tile, width,
                                             [&](float sum, float made, int half) { return fused(sum, rescale[half], made); });
  }
  UNROLL
  for (int half = 0; half < 2; ++half) {
    const float total = sum_of_lanes<Row>(state[half].total), inverse = total == 0 ? 0 : 1 / (total * weight_factor(T{}));
    const int t = row_of(half);
    if (t >= block.queries) continue;
    Tile::template write<T>(sums, half, inverse, o + block.query(shape, t), width);
    if (lane_index() % Row::kLanesEach == 0) lse[block.row(shape, t)] = total == 0 ? -INFINITY : state[half].peak + logarithm(total);
  }
}

}  // namespace st::cuda
