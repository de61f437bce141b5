// Gradients of attention. With p recomputed from the scores and lse, and delta_t = sum_d do_td o_td:
//   dv = p^T do;  dp = do v^T;  ds = p (dp - delta) scale;  dq = ds k;  dk = ds^T q.
// A first kernel has blocks of queries, which pass over the keys: dq, and delta for the second. A second one has blocks of keys, which pass
// over the heads that read them, and over their queries: dk and dv. So each sum has one writer and a fixed order, without atomics.
#pragma once

#include "backend/cuda/attention_tiles.cuh"

namespace st::cuda {

template <class C, int kWidth>
using BackwardTile = Tiling<C, kWidth, 4>;

template <class C>
struct Score {
  C p, ds;
};
/// From a product of q and k and one of do and v.
template <class C>
DEVICE Score<C> score_of(C qk, C dp, C lse, C delta, C scale) {
  const C p = exponential(qk * scale - lse);
  return {p, p * (dp - delta) * scale};
}

template <class Tile, class C>
DEVICE void write_row(const AttentionShape& shape, const Four<C> (&sums)[Tile::kColumns], void* to, int64_t at) {
  UNROLL
  for (int i = 0; i < Tile::kColumns; ++i)
    if (Tile::column(i) < shape.width) write_four(shape, sums[i], to, at, Tile::column(i));
}

template <class C, int kWidth>
KERNEL((BackwardTile<C, kWidth>::kThreads))
attend_backward_queries(AttentionShape shape, const void* q, const void* k, const void* v, const void* o, const C* lse, const void* d_o,
                        C* delta, void* dq) {
  using Tile = BackwardTile<C, kWidth>;
  SHARED(Four<C>, q_tile, Tile::kVectors);
  SHARED(Four<C>, do_tile, Tile::kVectors);
  SHARED(Four<C>, k_tile, Tile::kVectors);
  SHARED(Four<C>, v_tile, Tile::kVectors);
  SHARED(C, weights, Tile::kWeights);
  const int64_t all_heads = shape.batch * shape.heads, head = block_index() % all_heads, b = head / shape.heads, h = head % shape.heads;
  const int64_t t0 = (grid_blocks() / all_heads - 1 - block_index() / all_heads) * Tile::kRows;
  const int queries = within(shape.queries - t0, Tile::kRows);
  const int64_t group = h / (shape.heads / shape.groups);
  const int64_t query_step = shape.heads * shape.width, key_step = shape.groups * shape.width;
  const auto scale = static_cast<C>(shape.scale);
  load_tile<Tile>(q_tile, shape, q, shape.query(b, t0, h), query_step, queries);
  load_tile<Tile>(do_tile, shape, d_o, shape.query(b, t0, h), query_step, queries);
  sync_block();

  C own_lse[Tile::kRowsEach], own_delta[Tile::kRowsEach];
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const int t = Tile::row() + r;
    C sum = C(0);
    UNROLL
    for (int i = 0; i < Tile::kColumns; ++i) {
      if (t >= queries || Tile::column(i) >= shape.width) continue;
      const Four<C> left = do_tile[t * Tile::kStride + Tile::column(i) / 4];
      const Four<C> right = read_four<C>(shape, o, shape.query(b, t0 + t, h), Tile::column(i));
      UNROLL
      for (int e = 0; e < 4; ++e) sum = fused(left.at[e], right.at[e], sum);
    }
    own_delta[r] = sum_of_lanes<Tile>(sum);
    own_lse[r] = t < queries ? lse[shape.row(b, t0 + t, h)] : C(0);
    if (t < queries && Tile::lane() == 0) delta[shape.row(b, t0 + t, h)] = own_delta[r];
  }

  Four<C> sums[Tile::kRowsEach][Tile::kColumns] = {};
  const int64_t seen_at_all = shape.seen(t0 + queries - 1);
  for (int64_t s0 = 0; s0 < seen_at_all; s0 += Tile::kRows) {
    const int keys = within(shape.keys - s0, Tile::kRows);
    if (s0 > 0) sync_block();
    load_tile<Tile>(k_tile, shape, k, shape.key(b, s0, group), key_step, keys);
    load_tile<Tile>(v_tile, shape, v, shape.key(b, s0, group), key_step, keys);
    sync_block();
    C qk[Tile::kRowsEach][Tile::kOthersEach], dp[Tile::kRowsEach][Tile::kOthersEach];
    multiply_tiles<Tile>(qk, q_tile, k_tile, shape.width);
    multiply_tiles<Tile>(dp, do_tile, v_tile, shape.width);
    Span spans[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      const int t = Tile::row() + r;
      spans[r] = {0, t < queries ? within(shape.seen(t0 + t) - s0, keys) : 0};
      UNROLL
      for (int i = 0; i < Tile::kOthersEach; ++i)
        if (Tile::other(i) < Tile::kRows)
          weights[t * Tile::kWeightStride + Tile::other(i)] = score_of(qk[r][i], dp[r][i], own_lse[r], own_delta[r], scale).ds;
    }
    sync_block();
    add_weighted<Tile>(sums, weights, k_tile, spans, shape.width);
  }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r)
    if (Tile::row() + r < queries) write_row<Tile>(shape, sums[r], dq, shape.query(b, t0 + Tile::row() + r, h));
}

template <class C, int kWidth>
KERNEL((BackwardTile<C, kWidth>::kThreads))
attend_backward_keys(AttentionShape shape, const void* q, const void* k, const void* v, const C* lse, const void* d_o, const C* delta,
                     void* dk, void* dv) {
  using Tile = BackwardTile<C, kWidth>;
  SHARED(Four<C>, q_tile, Tile::kVectors);
  SHARED(Four<C>, do_tile, Tile::kVectors);
  SHARED(Four<C>, k_tile, Tile::kVectors);
  SHARED(Four<C>, v_tile, Tile::kVectors);
  SHARED(C, p_weights, Tile::kWeights);
  SHARED(C, ds_weights, Tile::kWeights);
  SHARED(C, lse_tile, Tile::kRows);
  SHARED(C, delta_tile, Tile::kRows);
  const int64_t all_groups = shape.batch * shape.groups, b = block_index() % all_groups / shape.groups;
  const int64_t group = block_index() % all_groups % shape.groups, s0 = block_index() / all_groups * Tile::kRows;
  const int keys = within(shape.keys - s0, Tile::kRows);
  const int64_t per_group = shape.heads / shape.groups;
  const int64_t query_step = shape.heads * shape.width, key_step = shape.groups * shape.width;
  const auto scale = static_cast<C>(shape.scale);
  load_tile<Tile>(k_tile, shape, k, shape.key(b, s0, group), key_step, keys);
  load_tile<Tile>(v_tile, shape, v, shape.key(b, s0, group), key_step, keys);

  Four<C> dk_sums[Tile::kRowsEach][Tile::kColumns] = {}, dv_sums[Tile::kRowsEach][Tile::kColumns] = {};
  const int64_t first = shape.first_query(s0), begin = (first < 0 ? 0 : first) / Tile::kRows * Tile::kRows;
  for (int64_t h = group * per_group; h < (group + 1) * per_group; ++h)
    for (int64_t t0 = begin; t0 < shape.queries; t0 += Tile::kRows) {
      const int queries = within(shape.queries - t0, Tile::kRows);
      sync_block();
      load_tile<Tile>(q_tile, shape, q, shape.query(b, t0, h), query_step, queries);
      load_tile<Tile>(do_tile, shape, d_o, shape.query(b, t0, h), query_step, queries);
      if (thread_index() < queries) {
        lse_tile[thread_index()] = lse[shape.row(b, t0 + thread_index(), h)];
        delta_tile[thread_index()] = delta[shape.row(b, t0 + thread_index(), h)];
      }
      sync_block();
      C qk[Tile::kRowsEach][Tile::kOthersEach], dp[Tile::kRowsEach][Tile::kOthersEach];
      multiply_tiles<Tile>(qk, k_tile, q_tile, shape.width);
      multiply_tiles<Tile>(dp, v_tile, do_tile, shape.width);
      Span spans[Tile::kRowsEach];
      UNROLL
      for (int r = 0; r < Tile::kRowsEach; ++r) {
        const int s = Tile::row() + r;
        spans[r] = {within(shape.first_query(s0 + s) - t0, queries), s < keys ? queries : 0};
        UNROLL
        for (int i = 0; i < Tile::kOthersEach; ++i) {
          const int t = Tile::other(i);
          if (t >= queries) continue;
          const Score<C> score = score_of(qk[r][i], dp[r][i], lse_tile[t], delta_tile[t], scale);
          p_weights[s * Tile::kWeightStride + t] = score.p;
          ds_weights[s * Tile::kWeightStride + t] = score.ds;
        }
      }
      sync_block();
      add_weighted<Tile>(dv_sums, p_weights, do_tile, spans, shape.width);
      add_weighted<Tile>(dk_sums, ds_weights, q_tile, spans, shape.width);
    }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const int s = Tile::row() + r;
    if (s >= keys) continue;
    write_row<Tile>(shape, dk_sums[r], dk, shape.key(b, s0 + s, group));
    write_row<Tile>(shape, dv_sums[r], dv, shape.key(b, s0 + s, group));
  }
}

}  // namespace st::cuda
