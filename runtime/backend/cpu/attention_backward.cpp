// Gradients of attention. A task is one group of one sequence with all query heads that read it, so dk and dv have one writer and a fixed
// order: heads, blocks of queries, blocks of keys. With p recomputed from the scores and lse, and delta_t = sum_d do_td o_td:
//   dv = p^T do;  dp = do v^T;  ds = p (dp - delta) scale;  dq = ds k;  dk = ds^T q.
#include "backend/cpu/attention_block.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

using micro::kWidth;
using micro::Lanes;

/// Turns scores and dp into p and ds, in place.
void soften_backward(const BlockSight& sight, float scale, const BackwardScratch& x) {
  const Lanes factor = micro::broadcast(scale);
  for (int64_t c = 0; c < sight.lanes(); c += kWidth) {
    const int64_t rows = sight.seen_by(c + kWidth - 1);
    const Lanes lse = micro::load(x.lse + c), delta = micro::load(x.delta + c);
    for (int64_t r = 0; r < rows; ++r) {
      float *p_at = x.p + r * kBlock + c, *ds_at = x.ds + r * kBlock + c;
      const Lanes p = exp_of(micro::load(p_at) - lse);
      micro::store(p_at, p);
      micro::store(ds_at, p * (micro::load(ds_at) - delta) * factor);
    }
    for (int64_t r = rows; r < sight.keys; ++r) {
      micro::store(x.p + r * kBlock + c, Lanes{});
      micro::store(x.ds + r * kBlock + c, Lanes{});
    }
  }
}

/// delta = sum_d do_d o_d for a block of n queries, one per lane, both packed by pack_transposed: the columns of two panels at a time.
void sum_products(const float* o, const float* d_o, int64_t n, int64_t width, float* delta) {
  for (int64_t c = 0; c < n; c += micro::kTileColumns) {
    const int64_t panel = std::min<int64_t>(micro::kTileColumns, kBlock - c), second = panel - kWidth;  // the same one if there is only one
    const float *left = o + c * width, *right = d_o + c * width;
    Lanes sum = {}, other = {};
    for (int64_t d = 0; d < width; ++d) {
      const int64_t at = d * panel;
      sum = sum + micro::load(left + at) * micro::load(right + at);
      other = other + micro::load(left + at + second) * micro::load(right + at + second);
    }
    micro::store(delta + c, sum);
    micro::store(delta + c + second, other);
  }
}

/// lse and delta for a block of n queries. For missing queries, and those that see nothing, lse is +inf and delta 0, so p is 0.
[[gnu::noinline]] void prepare_rows(const float* lse, int64_t n, const float* o_transposed, int64_t width, const BackwardScratch& x) {
  sum_products(o_transposed, x.do_transposed, n, width, x.delta);
  for (int64_t r = 0; r < kBlock; ++r) {
    const bool sees = r < n && lse[r] != -std::numeric_limits<float>::infinity();
    x.lse[r] = sees ? lse[r] : std::numeric_limits<float>::infinity();
    if (!sees) x.delta[r] = 0;
  }
}

template <class T>
void copy_rows(const float* sums, int64_t n, int64_t width, T* to, int64_t stride) {
  const int64_t padded = round_up(width, kWidth);
  for (int64_t r = 0; r < n; ++r)
    each_vector<float>(width,
                       [&](int64_t d, int64_t count) { store_part(to + r * stride + d, F32(micro::load(sums + r * padded + d)), count); });
}

/// The rows to prefetch during a block's products: those that it writes, those of the next block, and a share of the next task's keys and
/// values.
[[gnu::noinline]] RowsAhead look_ahead(const Call& call, const Heads& shape, int64_t b, int64_t h, int64_t t,
                                       std::optional<int64_t> guess) {
  RowsAhead ahead;
  const int64_t size = bytes_of(call.in[0].dtype), queries = std::min(kBlock, shape.queries - t), per_group = shape.heads_per_group();
  const auto add = [&](const Operand& of, int64_t at, int64_t heads, int64_t rows) {
    ahead.add(as<std::byte>(of) + at * size, size, heads * shape.width, rows, shape.width);
  };
  add(call.out[0], shape.query(b, t, h), shape.heads, queries);
  const bool last_of_head = t + queries == shape.queries, last = last_of_head && (h + 1) % per_group == 0;
  if (!last || guess) {
    const int64_t next = last ? shape.query(*guess / shape.groups, 0, *guess % shape.groups * per_group)
                              : shape.query(b, last_of_head ? 0 : t + queries, last_of_head ? h + 1 : h);
    const int64_t rows = std::min(kBlock, last_of_head ? shape.queries : shape.queries - t - queries);
    for (const size_t in : {0, 5, 3}) add(call.in[in], next, shape.heads, rows);
  }
  const int64_t done = h % per_group * shape.queries + t, all = per_group * shape.queries;
  const int64_t from = shape.keys * done / all, to = shape.keys * (done + queries) / all;  // a share per block
  if (guess && shape.fits_twice())
    for (const size_t in : {1, 2}) add(call.in[in], shape.key(*guess / shape.groups, from, *guess % shape.groups), shape.groups, to - from);
  for (const size_t out : {1, 2}) add(call.out[out], shape.key(b, from, h / per_group), shape.groups, to - from);
  return ahead;
}

template <class T>
void run_block(const Call& call, const Heads& shape, int64_t b, int64_t h, int64_t t, int64_t packed_keys, RowsAhead ahead,
               const BackwardScratch& x) {
  const T *q = as<T>(call.in[0]), *o = as<T>(call.in[3]), *d_o = as<T>(call.in[5]);
  const float* lse = as<float>(call.in[4]) + (b * shape.heads + h) * shape.queries + t;
  const int64_t at = shape.query(b, t, h), stride = shape.heads * shape.width, padded = padded_width(shape);
  const int64_t queries = std::min(kBlock, shape.queries - t);
  pack_transposed(q + at, stride, queries, shape.width, x.q_transposed);
  pack_transposed(d_o + at, stride, queries, shape.width, x.do_transposed);
  pack_columns(q + at, stride, queries, shape.width, x.q_columns);
  pack_columns(d_o + at, stride, queries, shape.width, x.do_columns);
  pack_transposed(o + at, stride, queries, shape.width, x.dq);  // dq's memory is still free
  prepare_rows(lse, queries, x.dq, shape.width, x);
  std::fill_n(x.dq, queries * padded, 0.0F);

  const int64_t seen = shape.keys_seen(t + queries);
  for (int64_t s = 0; s < seen; s += kBlock) {
    const int64_t rows = std::min(kBlock, packed_keys - s);
    const BlockSight sight(shape, s, rows, t, queries);
    multiply_heads(sight, x.key_rows + s * shape.width, x.q_transposed, shape.width, shape.scale, x.p, ahead);
    multiply_heads(sight, x.value_rows + s * shape.width, x.do_transposed, shape.width, 1, x.ds, ahead);
    mask_block(sight, x.p);
    soften_backward(sight, shape.scale, x);
    add_over_queries(sight, x.p, x.do_columns, shape.width, x.dv + s * padded, ahead);
    add_over_queries(sight, x.ds, x.q_columns, shape.width, x.dk + s * padded, ahead);
    add_over_keys(sight, x.ds, x.key_columns + s * padded, shape.width, x.dq, ahead);
  }
  copy_rows(x.dq, queries, shape.width, as<T>(call.out[0]) + at, stride);
}

template <class T>
void run_group(const Call& call, const Heads& shape, int64_t task, std::optional<int64_t> guess, const BackwardScratch& x) {
  const int64_t b = task / shape.groups, g = task % shape.groups;
  const T *k = as<T>(call.in[1]), *v = as<T>(call.in[2]);
  const int64_t stride = shape.groups * shape.width, padded = padded_width(shape);
  const int64_t seen = shape.keys_seen(shape.queries);
  for (int64_t s = 0; s < seen; s += kBlock) {
    const int64_t rows = std::min(kBlock, seen - s), at = shape.key(b, s, g);
    pack_rows(k + at, stride, rows, shape.width, x.key_rows + s * shape.width);
    pack_rows(v + at, stride, rows, shape.width, x.value_rows + s * shape.width);
    pack_columns(k + at, stride, rows, shape.width, x.key_columns + s * padded);
  }
  std::fill_n(x.dk, shape.keys * padded, 0.0F);
  std::fill_n(x.dv, shape.keys * padded, 0.0F);
  for (int64_t h = g * shape.heads_per_group(); h < (g + 1) * shape.heads_per_group(); ++h) {
    for (int64_t t = 0; t < shape.queries; t += kBlock)
      run_block<T>(call, shape, b, h, t, seen, look_ahead(call, shape, b, h, t, guess), x);
  }
  copy_rows(x.dk, shape.keys, shape.width, as<T>(call.out[1]) + shape.key(b, 0, g), stride);
  copy_rows(x.dv, shape.keys, shape.width, as<T>(call.out[2]) + shape.key(b, 0, g), stride);
}

void run_attention_backward(const Call& call) {
  const Heads shape(call.in[0].shape, call.in[1].shape, *call.attrs);
  with_attention_type("attention_backward", call.in[0].dtype, [&](auto element) {
    run_with_scratch(*call.workers, shape.batch * shape.groups, workspace_of(call),
                     BackwardScratch(shape, micro::kKernelTile, nullptr).floats,
                     [&](int64_t task, std::optional<int64_t> guess, float* scratch) {
                       run_group<decltype(element)>(call, shape, task, guess, BackwardScratch(shape, micro::kKernelTile, scratch));
                     });
  });
}

}  // namespace

const Kernel kernel_attention_backward = {run_attention_backward};

}  // namespace st::cpu::ST_ISA
