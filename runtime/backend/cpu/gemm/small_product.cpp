#include "backend/cpu/gemm/small_product.h"

#include "backend/cpu/gemm/micro.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

/// R rows of A, `row` bytes apart. One pointer serves five rows: x86 addresses them with offsets of 0 to 4 strides.
template <int R>
struct RowsOfA {
  static constexpr int kFive = 5;
  const char* base[(R + kFive - 1) / kFive];
  int64_t row, three;

  ST_MICRO RowsOfA(const float* a, int64_t row_floats) : row(row_floats * 4), three(row_floats * 12) {
    base[0] = reinterpret_cast<const char*>(a);
    for (int i = 1; i < (R + kFive - 1) / kFive; ++i) base[i] = base[i - 1] + (three + 2 * row);
  }
  template <int kRow>
  ST_MICRO Lanes at() const {
    constexpr int64_t kPlace = kRow % kFive;
    return broadcast(*reinterpret_cast<const float*>(base[kRow / kFive] + (kPlace == 3 ? three : kPlace * row)));
  }
  ST_MICRO void advance(int64_t bytes) {
    for (const char*& b : base) b += bytes;
  }
};

/// finish_tile() for the only K block. With masks, partial vectors cost no more than whole ones.
template <int V, size_t... R>
ST_MICRO void finish(std::index_sequence<R...> rows, detail::TileRow<V> (&sums)[sizeof...(R)], const TileOut& out) {
  if constexpr (kWidth < 16) return detail::finish_tile<V>(rows, sums, out);
  if (out.beta != 0) [[unlikely]] {
    alignas(64) float tile[sizeof...(R) * V * kWidth];
    (detail::store_row<V>(tile + R * V * kWidth, sums[R]), ...);
    return detail::finish_rows(sizeof...(R), V * kWidth, tile, out);
  }
  constexpr int64_t kLast = (V - 1) * kWidth;
  if (out.alpha != 1) {
    const Lanes alpha = broadcast(out.alpha);
    (detail::scale_by<V>(sums[R], alpha), ...);
  }
  if (out.bias != nullptr) {
    detail::TileRow<V> bias;
    if constexpr (V > 1) bias.v[0] = load(out.bias);
    bias.v[V - 1] = load(out.bias + kLast, out.columns - kLast);
    (detail::add_to<V>(sums[R], bias), ...);
  }
  const auto store_row = [&](float* c, const detail::TileRow<V>& row) __attribute__((always_inline)) {
    if constexpr (V > 1) store(c, row.v[0]);
    store(c + kLast, row.v[V - 1], out.columns - kLast);
  };
  (store_row(out.c + static_cast<int64_t>(R) * out.stride, sums[R]), ...);
}

/// The rows of B for a tile.
struct RowsOfB {
  const float* first;
  int64_t row;
};

template <int V, size_t... R>
ST_MICRO void tile(std::index_sequence<R...>, const GemmProblem& p, const float* a, RowsOfB from, const TileOut& out) {
  detail::TileRow<V> sums[sizeof...(R)] = {};
  RowsOfA<sizeof...(R)> rows(a, p.a.row);
  const int64_t last = out.columns - (V - 1) * kWidth;
  const float* b = from.first;
  for (int64_t k = 0; k < p.k; ++k) {
    detail::FactorRow<V> row;
    if constexpr (V > 1) row.v[0] = load(b);
    row.v[V - 1] = load(b + (V - 1) * kWidth, last);
    (detail::update_row<V>(sums[R], rows.template at<static_cast<int>(R)>(), row), ...);
    rows.advance(p.a.column * 4);
    b += from.row;
  }
  finish<V>(std::index_sequence<R...>(), sums, out);
}

using TileFunction = void (*)(const GemmProblem& p, const float* a, RowsOfB b, const TileOut& out);

template <int R, int V>
void tile_of(const GemmProblem& p, const float* a, RowsOfB b, const TileOut& out) {
  tile<V>(std::make_index_sequence<R>(), p, a, b, out);
}

template <int V, size_t... R>
TileFunction tile_function(std::index_sequence<R...>, int64_t rows) {
  static constexpr TileFunction kOfRows[] = {tile_of<static_cast<int>(R) + 1, V>...};
  return kOfRows[rows - 1];
}

/// A tile one vector wide has registers for more rows if there are 32.
constexpr int64_t kNarrowRows = kWidth == 16 ? 16 : kTileRows;

}  // namespace

void small_block(const GemmProblem& p, const TileSchedule& s, const GemmOperands& x, const TaskBlock& block) {
  TileOut out{.c = nullptr, .stride = p.c.row, .columns = 0, .alpha = p.alpha, .beta = p.beta};
  const int64_t end = block.column + block.columns, rows_end = block.row + block.rows;
  for (int64_t j = block.column; j < end; j += kTileColumns) {
    out.columns = std::min<int64_t>(kTileColumns, end - j);
    const bool two = out.columns > kWidth;
    const RowsOfB b = x.packed_b == nullptr ? RowsOfB{static_cast<const float*>(x.b) + j, p.b.row}
                                            : RowsOfB{reinterpret_cast<const float*>(x.packed_b) + j * p.k, two ? kTileColumns : kWidth};
    if (p.bias) out.bias = static_cast<const float*>(x.bias) + j;
    const int64_t step = !two && block.rows <= kNarrowRows ? block.rows : s.mr;
    for (int64_t i = block.row; i < rows_end; i += step) {
      const int64_t rows = std::min(step, rows_end - i);
      out.c = static_cast<float*>(x.c) + i * p.c.row + j;
      const TileFunction make = two ? tile_function<2>(std::make_index_sequence<kTileRows>(), rows)
                                    : tile_function<1>(std::make_index_sequence<kNarrowRows>(), rows);
      make(p, static_cast<const float*>(x.a) + i * p.a.row, b, out);
    }
  }
}

void small_product(const GemmProblem& p, const TileSchedule& s, const GemmOperands& x) { small_block(p, s, x, {0, p.m, 0, p.n}); }

}  // namespace st::cpu::ST_ISA
