// o = softmax(scale q k^T) v for each head, and the log of each row's sum. A task is one head of one sequence: its keys and values are
// packed once, then each block of queries passes over the blocks of keys it sees with a running maximum m, sum l and unnormalised output:
//   m' = max(m, max_s x_s);  p_s = e^(x_s - m');  l = l e^(m - m') + sum p_s;  o = o e^(m - m') + sum p_s v_s;  at the end o / l.
// Causal blocks that no query sees are skipped. kBlock fixes the order over keys.
#include "backend/cpu/attention_block.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

using micro::kWidth;
using micro::Lanes;

/// The maximum of `before` and a column of vectors, in four independent chains to hide the latency.
ST_MICRO Lanes greatest(Lanes before, const float* column, int64_t rows) {
  const auto greater = [](Lanes a, Lanes b) __attribute__((always_inline)) { return a > b ? a : b; };
  Lanes peaks[4] = {before, before, before, before};
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    for (int64_t i = 0; i < 4; ++i) peaks[i] = greater(micro::load(column + (r + i) * kBlock), peaks[i]);
  for (; r < rows; ++r) peaks[0] = greater(micro::load(column + r * kBlock), peaks[0]);
  return greater(greater(peaks[0], peaks[1]), greater(peaks[2], peaks[3]));
}

/// Turns a block of scores into e^(score - maximum), updates the running maximum and sum, and writes the factor for earlier sums to
/// `rescale`. A query that has seen nothing keeps the maximum -inf; 0 replaces it, so that e^(-inf - 0) is 0 and not NaN.
void soften(const BlockSight& sight, const ForwardScratch& x) {
  const Lanes none = micro::broadcast(-std::numeric_limits<float>::infinity());
  for (int64_t c = 0; c < sight.lanes(); c += kWidth) {
    const int64_t rows = sight.seen_by(c + kWidth - 1);
    float* column = x.block + c;
    const Lanes before = micro::load(x.peak + c);
    const Lanes peak = greatest(before, column, rows);
    const Lanes stand_in = peak == none ? Lanes{} : peak;
    Lanes total = {};
    for (int64_t r = 0; r < rows; ++r) {
      const Lanes p = exp_of(micro::load(column + r * kBlock) - stand_in);
      micro::store(column + r * kBlock, p);
      total = total + p;
    }
    for (int64_t r = rows; r < sight.keys; ++r) micro::store(column + r * kBlock, Lanes{});
    const Lanes rescale = exp_of(before - stand_in);
    micro::store(x.rescale + c, rescale);
    micro::store(x.total + c, micro::load(x.total + c) * rescale + total);
    micro::store(x.peak + c, peak);
  }
}

void shrink_rows(const float* by, int64_t rows, int64_t padded, float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    if (by[r] == 1) continue;  // true for most rows after their maximum
    const Lanes factor = micro::broadcast(by[r]);
    for (int64_t d = 0; d < padded; d += kWidth) micro::store(sums + r * padded + d, micro::load(sums + r * padded + d) * factor);
  }
}

/// The rows to prefetch during a block's products: those that it writes, those of the next block, and a share of the next task's keys and
/// values.
[[gnu::noinline]] RowsAhead look_ahead(const Call& call, const Heads& shape, int64_t task, std::optional<int64_t> guess, int64_t t) {
  RowsAhead ahead;
  const int64_t size = bytes_of(call.in[0].dtype), queries = std::min(kBlock, shape.queries - t);
  const auto add = [&](const Operand& of, int64_t at, int64_t heads, int64_t rows) {
    ahead.add(as<std::byte>(of) + at * size, size, heads * shape.width, rows, shape.width);
  };
  const int64_t b = task / shape.heads, h = task % shape.heads, rest = shape.queries - t - queries;
  add(call.out[0], shape.query(b, t, h), shape.heads, queries);
  if (rest > 0) add(call.in[0], shape.query(b, t + queries, h), shape.heads, std::min(kBlock, rest));
  if (!guess || !shape.fits_twice()) return ahead;
  const int64_t b2 = *guess / shape.heads, h2 = *guess % shape.heads;
  if (rest == 0) add(call.in[0], shape.query(b2, 0, h2), shape.heads, std::min(kBlock, shape.queries));
  const int64_t from = shape.keys * t / shape.queries, to = shape.keys * (t + queries) / shape.queries;  // a share per block
  for (const size_t in : {1, 2}) add(call.in[in], shape.key(b2, from, h2 / shape.heads_per_group()), shape.groups, to - from);
  return ahead;
}

template <class T>
void run_head(const Call& call, const Heads& shape, int64_t task, std::optional<int64_t> guess, const ForwardScratch& x) {
  const int64_t b = task / shape.heads, h = task % shape.heads;
  const T *q = as<T>(call.in[0]), *k = as<T>(call.in[1]), *v = as<T>(call.in[2]);
  T* o = as<T>(call.out[0]);
  float* lse = as<float>(call.out[1]) + (b * shape.heads + h) * shape.queries;
  const int64_t group = h / shape.heads_per_group(), padded = padded_width(shape);
  const int64_t key_stride = shape.groups * shape.width, query_stride = shape.heads * shape.width;
  const int64_t seen_at_all = shape.keys_seen(shape.queries);
  for (int64_t s = 0; s < seen_at_all; s += kBlock) {
    const int64_t rows = std::min(kBlock, seen_at_all - s);
    pack_rows(k + shape.key(b, s, group), key_stride, rows, shape.width, x.keys + s * shape.width);
    pack_columns(v + shape.key(b, s, group), key_stride, rows, shape.width, x.values + s * padded);
  }
  for (int64_t t = 0; t < shape.queries; t += kBlock) {
    const int64_t queries = std::min(kBlock, shape.queries - t);
    pack_transposed(q + shape.query(b, t, h), query_stride, queries, shape.width, x.queries);
    std::fill_n(x.sums, queries * padded, 0.0F);
    std::fill_n(x.total, kBlock, 0.0F);
    std::fill_n(x.peak, kBlock, -std::numeric_limits<float>::infinity());
    RowsAhead ahead = look_ahead(call, shape, task, guess, t);
    // Blocks end where the packed ones do; scores beyond what these queries see are masked.
    const int64_t seen = shape.keys_seen(t + queries);
    for (int64_t s = 0; s < seen; s += kBlock) {
      const int64_t rows = std::min(kBlock, seen_at_all - s);
      const BlockSight sight(shape, s, rows, t, queries);
      multiply_heads(sight, x.keys + s * shape.width, x.queries, shape.width, shape.scale, x.block, ahead);
      mask_block(sight, x.block);
      soften(sight, x);
      if (s > 0) shrink_rows(x.rescale, queries, padded, x.sums);
      add_over_keys(sight, x.block, x.values + s * padded, shape.width, x.sums, ahead);
    }
    for (int64_t r = 0; r < queries; ++r) {
      const float total = x.total[r];
      const float inverse = total == 0 ? 0.0F : 1 / total;
      T* row = o + shape.query(b, t + r, h);
      each_vector<float>(shape.width, [&](int64_t d, int64_t count) {
        store_part(row + d, F32(micro::load(x.sums + r * padded + d) * micro::broadcast(inverse)), count);
      });
      lse[t + r] = total == 0 ? -std::numeric_limits<float>::infinity() : x.peak[r] + std::log(total);
    }
  }
}

void run_attention(const Call& call) {
  const Heads shape(call.in[0].shape, call.in[1].shape, *call.attrs);
  with_attention_type("attention", call.in[0].dtype, [&](auto element) {
    run_with_scratch(*call.workers, shape.batch * shape.heads, workspace_of(call),
                     ForwardScratch(shape, micro::kKernelTile, nullptr).floats,
                     [&](int64_t task, std::optional<int64_t> guess, float* scratch) {
                       run_head<decltype(element)>(call, shape, task, guess, ForwardScratch(shape, micro::kKernelTile, scratch));
                     });
  });
}

}  // namespace

const Kernel kernel_attention = {run_attention};

}  // namespace st::cpu::ST_ISA
