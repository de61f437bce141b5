// Gradients of attention. With p recomputed from the scores and lse, and delta_t = sum_d do_td o_td:
//   dv = p^T do;  dp = do v^T;  ds = p (dp - delta) scale;  dq = ds k;  dk = ds^T q.
// A first kernel has blocks of queries, which pass over the keys: dq, and delta for the second. A second one has blocks of keys, which pass
// over the heads that read them, and over their queries: dk and dv. So each sum has one writer and a fixed order, without atomics.
#pragma once

#include "backend/cuda/attention_tiles.cuh"

namespace st::cuda {

template <class C, int kWidth>
using BackwardTile = Tiling<C, kWidth, 4>;

/// A row's lse as weights are made of it. All scores of a row may be -inf: it then has no weights, as if it saw nothing.
template <class C>
DEVICE C weights_lse(C lse) {
  return lse == C(-INFINITY) ? C(INFINITY) : lse;
}

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
  const QueryBlock block(shape, Tile::kRows, kWidth);
  const bool is_sliced = Tile::is_sliced(shape);
  const int width = Tile::slice(shape, block.column);
  const auto scale = static_cast<C>(shape.scale);

  const auto load_own = [&](int64_t from) {
    load_tile<Tile>(q_tile, shape, q, block.query(shape, 0), shape.query_step(), block.queries, from);
    load_tile<Tile>(do_tile, shape, d_o, block.query(shape, 0), shape.query_step(), block.queries, from);
  };
  if (!is_sliced) load_own(0);

  C own_lse[Tile::kRowsEach], own_delta[Tile::kRowsEach];
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const int t = Tile::row() + r;
    const int64_t at = block.query(shape, t);
    C sum = C(0);
    for (int64_t column = Tile::lane() * 4; t < block.queries && column < shape.width; column += Tile::kLanesEach * 4) {
      const Four<C> left = read_four<C>(shape, d_o, at, column), right = read_four<C>(shape, o, at, column);
      UNROLL
      for (int e = 0; e < 4; ++e) sum = fused(left.at[e], right.at[e], sum);
    }
    own_delta[r] = sum_of_lanes<Tile>(sum);
    const int64_t row = block.row(shape, t);
    own_lse[r] = t < block.queries ? weights_lse(lse[row]) : C(0);
    if (t < block.queries && block.column == 0 && Tile::lane() == 0) delta[row] = own_delta[r];
  }

  Four<C> sums[Tile::kRowsEach][Tile::kColumns] = {};
  const int64_t seen_at_all = block.seen(shape);
  for (int64_t s0 = 0; s0 < seen_at_all; s0 += Tile::kRows) {
    const int keys = within(shape.keys - s0, Tile::kRows);
    const int64_t at = block.key(shape, s0);
    C qk[Tile::kRowsEach][Tile::kOthersEach] = {}, dp[Tile::kRowsEach][Tile::kOthersEach] = {};
    for (int64_t from = 0; from < Tile::summed(shape); from += kWidth) {
      sync_block();
      if (is_sliced) load_own(from);
      load_tile<Tile>(k_tile, shape, k, at, shape.key_step(), keys, from);
      load_tile<Tile>(v_tile, shape, v, at, shape.key_step(), keys, from);
      sync_block();
      add_products<Tile>(qk, q_tile, k_tile, Tile::slice(shape, from));
      add_products<Tile>(dp, do_tile, v_tile, Tile::slice(shape, from));
    }
    Span spans[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      const int t = Tile::row() + r;
      spans[r] = {0, t < block.queries ? within(shape.seen(block.t0 + t) - s0, keys) : 0};
      UNROLL
      for (int i = 0; i < Tile::kOthersEach; ++i)
        if (Tile::other(i) < Tile::kRows)
          weights[t * Tile::kWeightStride + Tile::other(i)] = score_of(qk[r][i], dp[r][i], own_lse[r], own_delta[r], scale).ds;
    }
    sync_block();
    if (is_sliced) {
      load_tile<Tile>(k_tile, shape, k, at, shape.key_step(), keys, block.column);
      sync_block();
    }
    add_weighted<Tile>(sums, weights, k_tile, spans, width);
  }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r)
    if (Tile::row() + r < block.queries) write_row<Tile>(shape, sums[r], dq, block.query(shape, Tile::row() + r), block.column);
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
  const KeyBlock block(shape, Tile::kRows, kWidth);
  const bool is_sliced = Tile::is_sliced(shape);
  const int width = Tile::slice(shape, block.column);
  const auto scale = static_cast<C>(shape.scale);
  const auto load_own = [&](int64_t from) {
    load_tile<Tile>(k_tile, shape, k, block.key(shape, 0), shape.key_step(), block.keys, from);
    load_tile<Tile>(v_tile, shape, v, block.key(shape, 0), shape.key_step(), block.keys, from);
  };
  if (!is_sliced) load_own(0);
  const int64_t begin = block.first_query(shape, Tile::kRows);

  Four<C> dk_sums[Tile::kRowsEach][Tile::kColumns] = {}, dv_sums[Tile::kRowsEach][Tile::kColumns] = {};
  for (int64_t h = block.first_head(shape); h < block.end_head(shape); ++h)
    for (int64_t t0 = begin; t0 < shape.queries; t0 += Tile::kRows) {
      const int queries = within(shape.queries - t0, Tile::kRows);
      const int64_t at = shape.query(block.b, t0, h);
      C qk[Tile::kRowsEach][Tile::kOthersEach] = {}, dp[Tile::kRowsEach][Tile::kOthersEach] = {};
      for (int64_t from = 0; from < Tile::summed(shape); from += kWidth) {
        sync_block();
        if (is_sliced) load_own(from);
        load_tile<Tile>(q_tile, shape, q, at, shape.query_step(), queries, from);
        load_tile<Tile>(do_tile, shape, d_o, at, shape.query_step(), queries, from);
        if (from == 0 && thread_index() < queries) {
          lse_tile[thread_index()] = weights_lse(lse[shape.row(block.b, t0 + thread_index(), h)]);
          delta_tile[thread_index()] = delta[shape.row(block.b, t0 + thread_index(), h)];
        }
        sync_block();
        add_products<Tile>(qk, k_tile, q_tile, Tile::slice(shape, from));
        add_products<Tile>(dp, v_tile, do_tile, Tile::slice(shape, from));
      }
      Span spans[Tile::kRowsEach];
      UNROLL
      for (int r = 0; r < Tile::kRowsEach; ++r) {
        const int s = Tile::row() + r;
        spans[r] = {within(shape.first_query(block.s0 + s) - t0, queries), s < block.keys ? queries : 0};
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
      if (is_sliced) {
        load_tile<Tile>(q_tile, shape, q, at, shape.query_step(), queries, block.column);
        load_tile<Tile>(do_tile, shape, d_o, at, shape.query_step(), queries, block.column);
        sync_block();
      }
      add_weighted<Tile>(dv_sums, p_weights, do_tile, spans, width);
      add_weighted<Tile>(dk_sums, ds_weights, q_tile, spans, width);
    }
  UNROLL
  for (int r = 0; r < Tile::kRowsEach; ++r) {
    const int s = Tile::row() + r;
    if (s >= block.keys) continue;
    write_row<Tile>(shape, dk_sums[r], dk, block.key(shape, s), block.column);
    write_row<Tile>(shape, dv_sums[r], dv, block.key(shape, s), block.column);
  }
}

}  // namespace st::cuda
