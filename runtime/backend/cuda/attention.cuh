// o = softmax(scale q k^T) v for each head, and the log of each row's sum. A block has a tile of queries of one head and passes over the
// tiles of keys that they see with a running maximum m, sum l and unnormalised output (Dao et al., "FlashAttention", 2022):
//   m' = max(m, max_s x_s);  p_s = e^(x_s - m');  l = l e^(m - m') + sum p_s;  o = o e^(m - m') + sum p_s v_s;  at the end o / l.
// Keys and values take turns in one tile of shared memory. Blocks with the most keys come first.
#pragma once

#include "backend/cuda/attention_tiles.cuh"

namespace st::cuda {

/// A row's state. A thread has a share of `total`; all threads of the row have the same `peak`.
template <class C>
struct Softmax {
  C peak = C(-INFINITY), total = C(0);
};

/// Turns scores of a row into weights and takes them into its state. Returns the factor for earlier sums. A row that has seen nothing keeps
/// the maximum -inf; 0 replaces it, so that e^(-inf - 0) is 0 and not NaN.
template <class Tile, class C>
DEVICE C soften(Softmax<C>& row, C (&x)[Tile::kOthersEach], C scale, int seen) {
  C best = row.peak;
  UNROLL
  for (int i = 0; i < Tile::kOthersEach; ++i) {
    x[i] = Tile::other(i) < seen ? x[i] * scale : C(-INFINITY);  // whose exponential is 0
    best = x[i] > best ? x[i] : best;
  }
  best = greatest_of_lanes<Tile>(best);
  const C stand_in = best == C(-INFINITY) ? C(0) : best;
  const C rescale = exponential(row.peak - stand_in);
  C sum = C(0);
  UNROLL
  for (int i = 0; i < Tile::kOthersEach; ++i) {
    x[i] = exponential(x[i] - stand_in);
    sum += x[i];
  }
  row.total = row.total * rescale + sum;
  row.peak = best;
  return rescale;
}

template <class C, int kWidth>
using ForwardTile = Tiling<C, kWidth, 2>;

template <class C, int kWidth>
KERNEL((ForwardTile<C, kWidth>::kThreads), 1)
attend(AttentionShape shape, const void* q, const void* k, const void* v, void* o, C* lse) {
  using Tile = ForwardTile<C, kWidth>;
  SHARED(Four<C>, own, Tile::kVectors);
  SHARED(Four<C>, others, Tile::kVectors);
  SHARED(C, weights, Tile::kWeights);
  const QueryBlock block(shape, Tile::kRows, kWidth);
  const bool is_sliced = Tile::is_sliced(shape);
  const int width = Tile::slice(shape, block.column);
  const auto scale = static_cast<C>(shape.scale);

  if (!is_sliced) load_tile<Tile>(own, shape, q, block.query(shape, 0), shape.query_step(), block.queries, 0);
  Softmax<C> state[Tile::kRowsEach];
  Four<C> sums[Tile::kRowsEach][Tile::kColumns] = {};
  const int64_t seen_at_all = block.seen(shape);
  int64_t at = block.key(shape, 0);
  for (int64_t s0 = 0; s0 < seen_at_all; s0 += Tile::kRows, at += Tile::kRows * shape.key_step()) {
    const int keys = within(shape.keys - s0, Tile::kRows);
    C x[Tile::kRowsEach][Tile::kOthersEach] = {};
    for (int64_t from = 0; from < Tile::summed(shape); from += kWidth) {
      sync_block();
      if (is_sliced) load_tile<Tile>(own, shape, q, block.query(shape, 0), shape.query_step(), block.queries, from);
      load_tile<Tile>(others, shape, k, at, shape.key_step(), keys, from);
      sync_block();
      add_products<Tile>(x, own, others, Tile::slice(shape, from));
    }
    Span spans[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      const int t = Tile::row() + r;
      spans[r] = {0, t < block.queries ? within(shape.seen(block.t0 + t) - s0, keys) : 0};
      const C rescale = soften<Tile>(state[r], x[r], scale, spans[r].to);
      UNROLL
      for (int i = 0; i < Tile::kColumns; ++i) UNROLL
      for (int e = 0; e < 4; ++e) sums[r][i].at[e] *= rescale;
      UNROLL
      for (int i = 0; i < Tile::kOthersEach; ++i)
        if (Tile::other(i) < Tile::kRows) weights[t * Tile::kWeightStride + Tile::other(i)] = x[r][i];
    }
    sync_block();
    load_tile<Tile>(others, shape, v, at, shape.key_step(), keys, block.column);
    sync_block();
    add_weighted<Tile>(sums, weights, others, spans, width);
  }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const C total = sum_of_lanes<Tile>(state[r].total), inverse = total == C(0) ? C(0) : C(1) / total;
    const int t = Tile::row() + r;
    if (t >= block.queries) continue;
    UNROLL
    for (int i = 0; i < Tile::kColumns; ++i) UNROLL
    for (int e = 0; e < 4; ++e) sums[r][i].at[e] *= inverse;
    write_row<Tile>(shape, sums[r], o, block.query(shape, t), block.column);
    if (block.column == 0 && Tile::lane() == 0) lse[block.row(shape, t)] = total == C(0) ? C(-INFINITY) : state[r].peak + logarithm(total);
  }
}

}  // namespace st::cuda
