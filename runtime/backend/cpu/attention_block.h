// Shared by attention's forward and backward: the shape, a block of scores, and products of packed heads with it.
//
// Scores are stored transposed, [keys, queries]: each query is a lane, and its maximum and sum over the keys are vertical operations. Only
// one block of kBlock x kBlock scores exists at a time (Dao et al., "FlashAttention", 2022).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "backend/cpu/attention_scratch.h"
#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack.h"
#include "backend/cpu/vector_exp.h"
#include "gemm/rounding.h"

namespace st::cpu::ST_ISA {

constexpr int64_t kBlock = attention_block(micro::kKernelTile);
static_assert(kBlock % micro::kTileRows == 0 && kBlock % micro::kWidth == 0);

/// Columns of a head's sums and packed panels, rounded up to whole vectors.
inline int64_t padded_width(const Heads& shape) { return round_up(shape.width, micro::kWidth); }

/// Packs `n` rows of a head (`row_stride` apart) as panels of the left operand: [panel][element of head][row].
template <class T>
void pack_rows(const T* from, int64_t row_stride, int64_t n, int64_t width, float* to) {
  for (int64_t r = 0; r < n; r += micro::kTileRows) {
    const int64_t rows = std::min<int64_t>(micro::kTileRows, n - r);
    micro::pack_panel(micro::PanelSource<T>{from + r * row_stride, row_stride, 1}, rows, rows, width, to + r * width);
  }
}

/// Packs the same rows as panels of the right operand whose columns are the head's elements: [panel][row][kTileColumns].
template <class T>
void pack_columns(const T* from, int64_t row_stride, int64_t n, int64_t width, float* to) {
  for (int64_t c = 0; c < width; c += micro::kTileColumns) {
    const int64_t columns = std::min<int64_t>(micro::kTileColumns, width - c);
    micro::pack_panel(micro::PanelSource<T>{from + c, 1, row_stride}, columns, round_up(columns, micro::kWidth), n, to + c * n);
  }
}

/// Packs the same rows transposed, as panels of the right operand whose columns are the rows; pads the last used panel with zeros.
template <class T>
void pack_transposed(const T* from, int64_t row_stride, int64_t n, int64_t width, float* to) {
  for (int64_t c = 0; c < n; c += micro::kTileColumns) {
    const int64_t panel = std::min<int64_t>(micro::kTileColumns, kBlock - c);
    const int64_t rows = std::clamp<int64_t>(n - c, 0, panel);
    micro::pack_panel(micro::PanelSource<T>{from + c * row_stride, row_stride, 1}, rows, panel, width, to + c * width);
  }
}

/// Which scores of a block count: those of its `keys` and `queries` and, if causal, only those whose key the query sees. The others are
/// not computed, and products with them that would add nothing are skipped.
struct BlockSight {
  int64_t keys, queries;
  int64_t hidden_from_first;  // number of first queries that do not see key 0; negative: query 0 sees keys after key 0
  bool causal;

  BlockSight(const Heads& shape, int64_t s0, int64_t n_keys, int64_t t0, int64_t n_queries)
      : keys(n_keys), queries(n_queries), hidden_from_first(shape.first_query(s0) - t0), causal(shape.causal) {}

  /// Queries below this number do not see key r, the others do.
  int64_t hidden_from(int64_t r) const { return causal ? std::clamp<int64_t>(hidden_from_first + r, 0, kBlock) : 0; }
  /// Keys below this number are seen by some of queries 0 .. last.
  int64_t seen_by(int64_t last) const { return causal ? std::clamp<int64_t>(last + 1 - hidden_from_first, 0, keys) : keys; }
  /// Queries, rounded up to whole vectors.
  int64_t lanes() const { return round_up(queries, micro::kWidth); }
};

/// Rows that are needed soon, prefetched into L2 during the products. A head's rows are far apart, so the hardware does not prefetch them
/// and packing would wait for each.
class RowsAhead {
 public:
  /// Rows of `width` elements of `size` bytes, `stride` elements apart.
  [[gnu::noinline]] void add(const void* first, int64_t size, int64_t stride, int64_t rows, int64_t width) {
    constexpr auto kCell = static_cast<int64_t>(sizeof(float));
    if (rows > 0 && stride * size % kCell == 0)
      ranges_[count_++] = {static_cast<const float*>(first), stride * size / kCell, rows, width * size / kCell};
  }

  /// Lets a product of k steps prefetch the next k lines.
  [[gnu::noinline]] void hand_to(micro::TileOut& out, int64_t k) {
    if (at_ == count_ || (turn_ = !turn_)) return;  // every second product, so that none waits for memory
    const Range& range = ranges_[at_];
    out.ahead = range.first + row_ * range.stride + column_;
    out.ahead_step = range.stride;
    if ((row_ += k) < range.rows) return;
    row_ = 0;
    if ((column_ += micro::kLine / static_cast<int64_t>(sizeof(float))) < range.width) return;
    column_ = 0;
    ++at_;
  }

 private:
  struct Range {
    const float* first;
    int64_t stride, rows, width;  // in floats
  };
  std::array<Range, 8> ranges_;
  size_t count_ = 0, at_ = 0;
  int64_t row_ = 0, column_ = 0;
  bool turn_ = false;
};

/// block[key][query] = alpha * rows . transposed, for the keys packed by pack_rows and a block packed by pack_transposed.
[[gnu::noinline]] inline void multiply_heads(const BlockSight& sight, const float* rows, const float* transposed, int64_t width,
                                             float alpha, float* block, RowsAhead& ahead) {
  for (int64_t c = 0; c < sight.lanes(); c += micro::kTileColumns) {
    const int64_t panel = std::min<int64_t>(micro::kTileColumns, kBlock - c), columns = std::min(panel, sight.lanes() - c);
    for (int64_t r = 0; r < sight.keys && sight.hidden_from(r) < c + columns; r += micro::kTileRows) {
      const int64_t tile = std::min<int64_t>(micro::kTileRows, sight.keys - r);
      const int64_t skipped = columns > micro::kWidth && sight.hidden_from(r) >= c + micro::kWidth ? micro::kWidth : 0;
      micro::TileOut out{.c = block + r * kBlock + c + skipped, .stride = kBlock, .columns = columns - skipped, .alpha = alpha};
      ahead.hand_to(out, width);
      micro::packed_kernel(tile, out.columns / micro::kWidth)(width, rows + r * width, transposed + c * width + skipped, panel, out);
    }
  }
}

/// sums[query][padded] += p . values over the keys: `values` is packed by pack_columns, one row per key.
[[gnu::noinline]] inline void add_over_keys(const BlockSight& sight, const float* block, const float* values, int64_t width, float* sums,
                                            RowsAhead& ahead) {
  const int64_t padded = round_up(width, micro::kWidth);
  for (int64_t c = 0; c < padded; c += micro::kTileColumns) {
    const int64_t panel = std::min<int64_t>(micro::kTileColumns, padded - c);
    for (int64_t t = 0, tile; t < sight.queries; t += tile) {
      tile = micro::rows_at_once(sight.queries - t);
      float* to = sums + t * padded + c;
      micro::TileOut out{.c = to, .stride = padded, .columns = panel, .sum = to, .sum_stride = padded, .finish = false};
      const int64_t keys = sight.seen_by(t + tile - 1);
      ahead.hand_to(out, keys);
      micro::strided_kernel<1, kBlock>(tile, panel / micro::kWidth)(keys, block + t, values + c * sight.keys, panel, out);
    }
  }
}

/// sums[key][padded] += p' . rows over the queries: `rows` is packed by pack_columns, one row per query.
[[gnu::noinline]] inline void add_over_queries(const BlockSight& sight, const float* block, const float* rows, int64_t width, float* sums,
                                               RowsAhead& ahead) {
  const int64_t padded = round_up(width, micro::kWidth);
  for (int64_t c = 0; c < padded; c += micro::kTileColumns) {
    const int64_t panel = std::min<int64_t>(micro::kTileColumns, padded - c);
    for (int64_t r = 0, tile; r < sight.keys && sight.hidden_from(r) < sight.queries; r += tile) {
      tile = micro::rows_at_once(sight.keys - r);
      const int64_t first = sight.hidden_from(r);
      float* to = sums + r * padded + c;
      micro::TileOut out{.c = to, .stride = padded, .columns = panel, .sum = to, .sum_stride = padded, .finish = false};
      ahead.hand_to(out, sight.queries - first);
      micro::strided_kernel<kBlock, 1>(tile, panel / micro::kWidth)(sight.queries - first, block + r * kBlock + first,
                                                                    rows + c * sight.queries + first * panel, panel, out);
    }
  }
}

/// Writes -inf where a query does not see a key, in vectors that another query sees.
inline void mask_block(const BlockSight& sight, float* block) {
  for (int64_t r = 0; r < sight.keys; ++r) {
    const int64_t hidden = sight.hidden_from(r), ragged = hidden % micro::kWidth;
    std::fill_n(block + r * kBlock + hidden - ragged, ragged, -std::numeric_limits<float>::infinity());
  }
}

/// e^x from vector_exp.h, so that attention and softmax agree.
ST_MICRO micro::Lanes exp_of(micro::Lanes x) { return exp_of<float>(F32(x)).data; }

/// Runs body(task, guess, scratch) for every task, with one scratch area per thread; `guess`: the task that this thread takes next if all
/// are equally fast, or none. No bit depends on which thread takes which task.
template <class Body>
void run_with_scratch(Workers& workers, int64_t tasks, std::span<std::byte> workspace, int64_t floats, const Body& body) {
  std::atomic<int64_t> next = 0;
  const int64_t lanes = std::min<int64_t>(workers.threads(), tasks);
  workers.run(lanes, [&](int64_t lane) {
    float* scratch = reinterpret_cast<float*>(workspace.data()) + lane * floats;
    for (int64_t task = next++; task < tasks; task = next++)
      body(task, task + lanes < tasks ? std::optional(task + lanes) : std::nullopt, scratch);
  });
}

/// The element types that attention computes; f64 only in the reference backend.
template <class Body>
void with_attention_type(const char* op, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(bf16{});
    case DType::f16:
      return body(f16{});
    default:
      fail(Code::unsupported,
           text(op, ": the cpu backend computes f32, bf16 and f16, got ", dtype, "; cast first, or use the reference backend"));
  }
}

}  // namespace st::cpu::ST_ISA
