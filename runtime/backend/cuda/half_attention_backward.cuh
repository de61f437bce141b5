// attention_backward.cuh's formulas of 16-bit operands by tensor cores: blocks of 64 queries make dq and delta, then blocks of 64 keys dk
// and dv. The latter make scores transposed, so that weights are in registers as they are multiplied. p and ds are rounded to 16 bits, in
// fp16 after a power of two that depends on the row of the tile.
#pragma once

#include <type_traits>

#include "backend/cuda/attention_backward.cuh"
#include "backend/cuda/half_heads.cuh"

namespace st::cuda {

/// The tiles that a block passes over, pairs of kRowsOfTile rows, of which as many are in shared memory as fit into 48 KB with the block's
/// own, two at most.
template <int kWidth, int kRowsOfTile>
struct PassedTiles {
  static constexpr int kRows = kRowsOfTile, kStages = (kHeadRows + 2 * kRows) * kWidth > (12 << 10) ? 1 : 2;
  static constexpr int kOne = kRows * HeadTile<kWidth>::kPerRow;  // chunks

  /// Calls read(step, first, second) to begin to copy the two tiles of a step, and take(step, first, second) once they are there.
  template <class Read, class Take>
  DEVICE static void pass(Chunk* shared, int steps, const Read& read, const Take& take) {
    const auto begin = [&](int step) {
      Chunk* const stage = shared + step % kStages * 2 * kOne;
      if (step < steps) read(step, stage, stage + kOne);
      commit_copies();
    };
    if constexpr (kStages > 1) begin(0);
    for (int step = 0; step < steps; ++step) {
      if constexpr (kStages == 1) {
        if (step > 0) sync_block();
        begin(step);
      }
      wait_copies<0>();
      sync_block();
      if constexpr (kStages > 1) begin(step + 1);
      const Chunk* const stage = shared + step % kStages * 2 * kOne;
      take(step, stage, stage + kOne);
    }
  }
};

/// A score's weight, 0 if it does not count; without a branch around the exponential.
DEVICE float weight_of(bool counts, float qk, float lse, float scale) { return exponential(counts ? qk * scale - lse : -INFINITY); }
/// From a product of do and v.
DEVICE float gradient_of(bool counts, float p, float dp, float delta, float scale) { return counts ? p * (dp - delta) * scale : 0; }

/// The largest magnitude of a row of a tile.
template <class Row>
DEVICE float largest_of_row(const float (&row)[Row::kOthersEach]) {
  float largest = 0;
  UNROLL
  for (int i = 0; i < Row::kOthersEach; ++i) largest = fabsf(row[i]) > largest ? fabsf(row[i]) : largest;
  return greatest_of_lanes<Row>(largest);
}

/// sums += rows . tile, with rows of any size.
template <class T, int kWidth, int kOthers>
DEVICE void add_gradients(float (&sums)[kWidth / 8][4], const float (&rows)[2][kOthers / 4], const Chunk* tile, int width) {
  float factors[2];
  UNROLL
  for (int half = 0; half < 2; ++half) {
    factors[half] = 1;
    if constexpr (std::is_same_v<T, F16>) factors[half] = row_factor(largest_of_row<FragmentRow<kOthers>>(rows[half]));
  }
  uint32_t weights[1][kOthers / kFragment][1][4];
  join_rows<T, kOthers, 1>(weights, rows, factors);
  HeadTile<kWidth>::template add_weighted<T, kOthers, 1>(
      sums, weights, tile, width, [&](float sum, float made, int half) { return fused(made, inverse_power(factors[half]), sum); });
}

template <class T, int kWidth>
KERNEL(kHeadThreads, 2)
attend_backward_queries_halves(AttentionShape shape, const uint16_t* q, const uint16_t* k, const uint16_t* v, const uint16_t* o,
                               const float* lse, const uint16_t* d_o, float* delta, uint16_t* dq) {
  using Tile = HeadTile<kWidth>;
  using Passed = PassedTiles<kWidth, 32>;
  constexpr int kKeys = Passed::kRows;
  using Row = FragmentRow<kKeys>;
  SHARED(Chunk, q_tile, kHeadRows * Tile::kPerRow);
  SHARED(Chunk, do_tile, kHeadRows * Tile::kPerRow);
  SHARED(Chunk, stages, Passed::kStages * 2 * Passed::kOne);
  const QueryBlock block(shape, kHeadRows, kWidth);
  const int width = static_cast<int>(shape.width);
  const auto scale = static_cast<float>(shape.scale);
  Tile::template read<kHeadRows>(q_tile, q + block.query(shape, 0), shape.query_step(), block.queries, width);
  Tile::template read<kHeadRows>(do_tile, d_o + block.query(shape, 0), shape.query_step(), block.queries, width);

  float own_lse[2], own_delta[2];
  UNROLL
  for (int half = 0; half < 2; ++half) {
    const int t = row_of(half);
    float sum = 0;
    for (int column = lane_index() % Row::kLanesEach * kChunk; t < block.queries && column < width; column += Row::kLanesEach * kChunk) {
      const auto left = load_vector<Vector<T, kChunk>>(d_o + block.query(shape, t) + column);
      const auto right = load_vector<Vector<T, kChunk>>(o + block.query(shape, t) + column);
      UNROLL
      for (int e = 0; e < kChunk; ++e) sum = fused(widen(left.at[e]), widen(right.at[e]), sum);
    }
    own_delta[half] = sum_of_lanes<Row>(sum);
    own_lse[half] = t < block.queries ? weights_lse(lse[block.row(shape, t)]) : 0;
    if (t < block.queries && lane_index() % Row::kLanesEach == 0) delta[block.row(shape, t)] = own_delta[half];
  }

  float sums[kWidth / 8][4] = {};
  const auto read = [&](int step, Chunk* k_tile, Chunk* v_tile) {
    const int64_t s0 = int64_t{step} * kKeys, at = block.key(shape, s0);
    const int keys = within(shape.keys - s0, kKeys);
    Tile::template read<kKeys>(k_tile, k + at, shape.key_step(), keys, width);
    Tile::template read<kKeys>(v_tile, v + at, shape.key_step(), keys, width);
  };
  const int steps = static_cast<int>(tiles_of(block.seen(shape), kKeys));
  Passed::pass(stages, steps, read, [&](int step, const Chunk* k_tile, const Chunk* v_tile) {
    const int64_t s0 = int64_t{step} * kKeys;
    float qk[1][kKeys / 8][4], dp[1][kKeys / 8][4], ds[2][Row::kOthersEach];
    Tile::template multiply<T, kKeys>(qk, q_tile, k_tile);
    Tile::template multiply<T, kKeys>(dp, do_tile, v_tile);
    UNROLL
    for (int half = 0; half < 2; ++half) {
      const int t = row_of(half);
      const int seen = t < block.queries ? within(shape.seen(block.t0 + t) - s0, within(shape.keys - s0, kKeys)) : 0;
      UNROLL
      for (int i = 0; i < Row::kOthersEach; ++i) {
        const int at = half * 2 + i % 2;
        const bool counts = Row::other(i) < seen;
        const float p = weight_of(counts, qk[0][i / 2][at], own_lse[half], scale);
        ds[half][i] = gradient_of(counts, p, dp[0][i / 2][at], own_delta[half], scale);
      }
    }
    add_gradients<T, kWidth, kKeys>(sums, ds, k_tile, width);
  });
  UNROLL
  for (int half = 0; half < 2; ++half)
    if (row_of(half) < block.queries) Tile::template write<T>(sums, half, 1, dq + block.query(shape, row_of(half)), width);
}

template <class T, int kWidth>
KERNEL(kHeadThreads, 2)
attend_backward_keys_halves(AttentionShape shape, const uint16_t* q, const uint16_t* k, const uint16_t* v, const float* lse,
                            const uint16_t* d_o, const float* delta, uint16_t* dk, uint16_t* dv) {
  using Tile = HeadTile<kWidth>;
  using Passed = PassedTiles<kWidth, 32>;  // whose sums leave few registers
  constexpr int kQueries = Passed::kRows;
  using Row = FragmentRow<kQueries>;
  SHARED(Chunk, k_tile, kHeadRows * Tile::kPerRow);
  SHARED(Chunk, v_tile, kHeadRows * Tile::kPerRow);
  SHARED(Chunk, stages, Passed::kStages * 2 * Passed::kOne);
  const KeyBlock block(shape, kHeadRows, kWidth);
  const int width = static_cast<int>(shape.width);
  const auto scale = static_cast<float>(shape.scale);
  Tile::template read<kHeadRows>(k_tile, k + block.key(shape, 0), shape.key_step(), block.keys, width);
  Tile::template read<kHeadRows>(v_tile, v + block.key(shape, 0), shape.key_step(), block.keys, width);

  // Step by step over the tiles of queries of one head after the other, by few numbers, since the sums take most registers. A query counts
  // from `begin` on.
  const int64_t own = block.key(shape, 0), begin = block.first_query(shape, kQueries);
  const int64_t first = shape.query(block.b, begin, block.first_head(shape)),
                first_row = shape.row(block.b, begin, block.first_head(shape));
  const int all_queries = static_cast<int>(shape.queries - begin), tiles = static_cast<int>(tiles_of(all_queries, kQueries));
  const int steps = tiles * static_cast<int>(block.end_head(shape) - block.first_head(shape));
  int first_seen[2];  // query that sees the key
  UNROLL
  for (int half = 0; half < 2; ++half)
    first_seen[half] = row_of(half) < block.keys ? within(shape.first_query(block.s0 + row_of(half)) - begin, all_queries) : all_queries;
  const auto query_of = [&](int step) { return step % tiles * kQueries; };
  const auto read = [&](int step, Chunk* q_tile, Chunk* do_tile) {
    const int t0 = query_of(step), queries = within(all_queries - t0, kQueries);
    const int64_t at = first + step / tiles * shape.width + t0 * shape.query_step();
    Tile::template read<kQueries>(q_tile, q + at, shape.query_step(), queries, width);
    Tile::template read<kQueries>(do_tile, d_o + at, shape.query_step(), queries, width);
  };
  float dk_sums[kWidth / 8][4] = {}, dv_sums[kWidth / 8][4] = {};
  Passed::pass(stages, steps, read, [&](int step, const Chunk* q_tile, const Chunk* do_tile) {
    const int t0 = query_of(step), left = all_queries - t0;
    const int64_t row = first_row + step / tiles * shape.queries + t0;
    const auto counts = [&](int t, int half) { return t0 + t >= first_seen[half] && t < left; };

    // One product after the other, so that not all of them are in registers at once.
    float x[1][kQueries / 8][4], p[2][Row::kOthersEach], ds[2][Row::kOthersEach];
    Tile::template multiply<T, kQueries>(x, k_tile, q_tile);
    UNROLL
    for (int i = 0; i < Row::kOthersEach; ++i) {
      const int t = Row::other(i);
      const float its_lse = weights_lse(lse[row + (t < left ? t : 0)]);
      UNROLL
      for (int half = 0; half < 2; ++half) p[half][i] = weight_of(counts(t, half), x[0][i / 2][half * 2 + i % 2], its_lse, scale);
    }
    uint32_t weights[1][kQueries / kFragment][1][4];
    join_rows<T, kQueries, 1>(weights, p, {weight_factor(T{}), weight_factor(T{})});
    Tile::template add_weighted<T, kQueries, 1>(dv_sums, weights, do_tile, width, [](float sum, float made, int) { return sum + made; });
    Tile::template multiply<T, kQueries>(x, v_tile, do_tile);
    UNROLL
    for (int i = 0; i < Row::kOthersEach; ++i) {
      const int t = Row::other(i);
      const float its_delta = delta[row + (t < left ? t : 0)];
      UNROLL
      for (int half = 0; half < 2; ++half)
        ds[half][i] = gradient_of(counts(t, half), p[half][i], x[0][i / 2][half * 2 + i % 2], its_delta, scale);
    }
    add_gradients<T, kWidth, kQueries>(dk_sums, ds, q_tile, width);
  });
  UNROLL
  for (int half = 0; half < 2; ++half) {
    if (row_of(half) >= block.keys) continue;
    Tile::template write<T>(dk_sums, half, 1, dk + own + row_of(half) * shape.key_step(), width);
    Tile::template write<T>(dv_sums, half, 1 / weight_factor(T{}), dv + own + row_of(half) * shape.key_step(), width);
  }
}

}  // namespace st::cuda
