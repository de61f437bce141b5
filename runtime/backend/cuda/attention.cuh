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
    x[i] *= scale;
    if (Tile::other(i) < seen) best = x[i] > best ? x[i] : best;
  }
  best = greatest_of_lanes<Tile>(best);
  const C stand_in = best == C(-INFINITY) ? C(0) : best;
  const C rescale = exponential(row.peak - stand_in);
  C sum = C(0);
  UNROLL
  for (int i = 0; i < Tile::kOthersEach; ++i) {
    x[i] = Tile::other(i) < seen ? exponential(x[i] - stand_in) : C(0);
    sum += x[i];
  }
  row.total = row.total * rescale + sum;
  row.peak = best;
  return rescale;
}

template <class C, int kWidth>
using ForwardTile = Tiling<C, kWidth, 2>;

template <class C, int kWidth>
KERNEL((ForwardTile<C, kWidth>::kThreads))
attend(AttentionShape shape, const void* q, const void* k, const void* v, void* o, C* lse) {
  using Tile = ForwardTile<C, kWidth>;
  SHARED(Four<C>, own, Tile::kVectors);
  SHARED(Four<C>, others, Tile::kVectors);
  SHARED(C, weights, Tile::kWeights);
  const int64_t all_heads = shape.batch * shape.heads, head = block_index() % all_heads, b = head / shape.heads, h = head % shape.heads;
  const int64_t t0 = (grid_blocks() / all_heads - 1 - block_index() / all_heads) * Tile::kRows;
  const int queries = within(shape.queries - t0, Tile::kRows);
  const int64_t group = h / (shape.heads / shape.groups);
  const int64_t query_step = shape.heads * shape.width, key_step = shape.groups * shape.width;
  const auto scale = static_cast<C>(shape.scale);
  load_tile<Tile>(own, shape, q, shape.query(b, t0, h), query_step, queries);

  Softmax<C> state[Tile::kRowsEach];
  Four<C> sums[Tile::kRowsEach][Tile::kColumns] = {};
  const int64_t seen_at_all = shape.seen(t0 + queries - 1);
  for (int64_t s0 = 0; s0 < seen_at_all; s0 += Tile::kRows) {
    const int keys = within(shape.keys - s0, Tile::kRows);
    sync_block();
    load_tile<Tile>(others, shape, k, shape.key(b, s0, group), key_step, keys);
    sync_block();
    C x[Tile::kRowsEach][Tile::kOthersEach];
    multiply_tiles<Tile>(x, own, others, shape.width);
    Span spans[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      const int t = Tile::row() + r;
      spans[r] = {0, t < queries ? within(shape.seen(t0 + t) - s0, keys) : 0};
      const C rescale = soften<Tile>(state[r], x[r], scale, spans[r].to);
      UNROLL
      for (int i = 0; i < Tile::kColumns; ++i) UNROLL
      for (int e = 0; e < 4; ++e) sums[r][i].at[e] *= rescale;
      UNROLL
      for (int i = 0; i < Tile::kOthersEach; ++i)
        if (Tile::other(i) < Tile::kRows) weights[t * Tile::kWeightStride + Tile::other(i)] = x[r][i];
    }
    sync_block();
    load_tile<Tile>(others, shape, v, shape.key(b, s0, group), key_step, keys);
    sync_block();
    add_weighted<Tile>(sums, weights, others, spans, shape.width);
  }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const C total = sum_of_lanes<Tile>(state[r].total), inverse = total == C(0) ? C(0) : C(1) / total;
    const int t = Tile::row() + r;
    if (t >= queries) continue;
    UNROLL
    for (int i = 0; i < Tile::kColumns; ++i) {
      if (Tile::column(i) >= shape.width) continue;
      UNROLL
      for (int e = 0; e < 4; ++e) sums[r][i].at[e] *= inverse;
      write_four(shape, sums[r][i], o, shape.query(b, t0 + t, h), Tile::column(i));
    }
    if (Tile::lane() == 0) lse[shape.row(b, t0 + t, h)] = total == C(0) ? C(-INFINITY) : state[r].peak + logarithm(total);
  }
}

}  // namespace st::cuda
