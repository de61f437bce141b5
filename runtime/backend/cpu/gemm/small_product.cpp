#include "backend/cpu/gemm/small_product.h"

#include "backend/cpu/gemm/micro.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

/// R rows of A, `row` bytes apart: five to a pointer, since 1, 2, 3 and 4 strides from it are addresses that a multiplication can take.
template <int R>
struct RowsOfA {
  static constexpr int kFive = 5;
  const char* base[(R + kFive - 1) / kFive];
  int64_t row, three;

  ST_MICRO RowsOfA(const float* a, int64_t row_floats) : row(row_floats * 4), three(row_floats * 12) {
    for (int i = 0; i < (R + kFive - 1) / kFive; ++i) base[i] = reinterpret_cast<const char*>(a + i * kFive * row_floats);
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

template <int V, size_t... R>
ST_MICRO void tile(std::index_sequence<R...>, const GemmProblem& p, const float* a, const float* b, const TileOut& out) {
  detail::TileRow<V> sums[sizeof...(R)] = {};
  RowsOfA<sizeof...(R)> rows(a, p.a.row);
  const int64_t last = out.columns - (V - 1) * kWidth;
  for (int64_t k = 0; k < p.k; ++k) {
    detail::FactorRow<V> row;
    if constexpr (V > 1) row.v[0] = load(b);
    row.v[V - 1] = load(b + (V - 1) * kWidth, last);
    (detail::update_row<V>(sums[R], rows.template at<static_cast<int>(R)>(), row), ...);
    rows.advance(p.a.column * 4);
    b += p.b.row;
  }
  detail::finish_tile<V>(std::index_sequence<R...>(), sums, out);
}

using TileFunction = void (*)(const GemmProblem& p, const float* a, const float* b, const TileOut& out);

template <int R, int V>
void tile_of(const GemmProblem& p, const float* a, const float* b, const TileOut& out) {
  tile<V>(std::make_index_sequence<R>(), p, a, b, out);
}

template <size_t... R>
TileFunction choose(std::index_sequence<R...>, int64_t rows, bool two) {
  constexpr TileFunction kOne[] = {tile_of<static_cast<int>(R) + 1, 1>...}, kTwo[] = {tile_of<static_cast<int>(R) + 1, 2>...};
  return two ? kTwo[rows - 1] : kOne[rows - 1];
}

}  // namespace

void small_product(const GemmProblem& p, const TileSchedule& s, const GemmOperands& x) {
  TileOut out{.c = nullptr, .stride = p.c.row, .columns = 0, .alpha = p.alpha, .beta = p.beta};
  for (int64_t j = 0; j < p.n; j += kTileColumns) {
    out.columns = std::min<int64_t>(kTileColumns, p.n - j);
    if (p.bias) out.bias = static_cast<const float*>(x.bias) + j;
    for (int64_t i = 0; i < p.m; i += s.mr) {
      out.c = static_cast<float*>(x.c) + i * p.c.row + j;
      choose(std::make_index_sequence<kTileRows>(), std::min(s.mr, p.m - i), out.columns > kWidth)(
          p, static_cast<const float*>(x.a) + i * p.a.row, static_cast<const float*>(x.b) + j, out);
    }
  }
}

}  // namespace st::cpu::ST_ISA
