#include "backend/cpu/gemm/tile_write.h"

#include <algorithm>

#include "backend/cpu/gemm/element.h"
#include "backend/cpu/gemm/float_rows.h"
#include "backend/cpu/gemm/set_kernels.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

/// The last write of a C that is not in fp32 rows: the micro-kernel's arithmetic, row by row.
void finish(const Product& product, const float* tile, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const GemmProblem& p = product.panels.cut.p;
  const GemmOperands& x = product.x;
  const bool bias_along_rows = product.bias_along_rows;
  float c[kTileColumns], bias[kTileColumns];
  if (p.bias && !bias_along_rows) read_floats(x.bias, p.c_type, column, 1, columns, bias);
  if constexpr (kPairs) {
    if (p.c_type == DType::bf16 && p.c.column == 1 && p.beta == 0 && columns == kTileColumns && !(p.bias && bias_along_rows)) {
      const Lanes alpha = broadcast(p.alpha);
      for (int64_t i = 0; i < rows; ++i) {
        Lanes low = micro::load(tile + i * kTileColumns), high = micro::load(tile + i * kTileColumns + kWidth);
        if (p.alpha != 1) low = low * alpha, high = high * alpha;
        if (p.bias) low = low + micro::load(bias), high = high + micro::load(bias + kWidth);
        store_bf16(low, high, static_cast<bf16*>(x.c) + (row + i) * p.c.row + column);
      }
      return;
    }
  }
  if (p.c.column == 1 && !(p.bias && bias_along_rows)) {
    return with_element(p.c_type, [&](auto element) {
      for (int64_t i = 0; i < rows; ++i) {
        auto* to = static_cast<decltype(element)*>(x.c) + (row + i) * p.c.row + column;
        each_vector<float>(columns, [&](int64_t j, int64_t n) {
          F32 value = st::cpu::ST_ISA::load(tile + i * kTileColumns + j);
          if (p.alpha != 1) value *= F32(p.alpha);
          if (p.beta != 0) value += F32(p.beta) * load_part(to + j, n);
          if (p.bias) value += st::cpu::ST_ISA::load(bias + j);
          store_part(to + j, value, n);
        });
      }
    });
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = (row + i) * p.c.row + column * p.c.column;
    if (p.beta != 0) read_floats(x.c, p.c_type, at, p.c.column, columns, c);
    if (p.bias && bias_along_rows) {
      read_floats(x.bias, p.c_type, row + i, 1, 1, bias);
      std::fill_n(bias + 1, columns - 1, bias[0]);
    }
    alignas(64) float finished[kTileColumns];
    for (int64_t j = 0; j < columns; ++j) {
      float value = tile[i * kTileColumns + j];
      if (p.alpha != 1) value *= p.alpha;
      if (p.beta != 0) value += p.beta * c[j];
      if (p.bias) value += bias[j];
      finished[j] = value;
    }
    write_floats(finished, columns, x.c, p.c_type, at, p.c.column);
  }
}

}  // namespace

void write_tile(const Product& product, const Tile& t) {
  const GemmProblem& p = product.panels.cut.p;
  const GemmOperands& x = product.x;
  const float* const sums = product.sums;
  const MicroKernel kernel =
      kHasPackingKernel && t.packed != nullptr ? packing_kernel(t.rows) : packed_kernel(t.rows, t.columns > kWidth ? 2 : 1);
  const bool first = t.k == 0, last = t.k + product.panels.cut.depth(t.k) == p.k;
  TileOut out{.c = nullptr, .stride = 0, .columns = t.columns, .rows = t.rows, .resume = t.resume, .resume_stride = t.resume_stride};
  out.ahead = t.ahead, out.ahead_step = t.ahead_step, out.lines = t.lines, out.packed = t.packed;
  if (last && p.c.column == 1) {
    const int64_t size = p.c_type == DType::f32 ? 4 : 2;
    out.target = static_cast<const std::byte*>(x.c) + (t.row * p.c.row + t.column) * size;
    out.target_step = p.c.row * size;
  }
  out.finish = last, out.alpha = p.alpha, out.beta = p.beta;
  if (last && (p.c_type != DType::f32 || p.c.column != 1 || (p.bias && product.bias_along_rows))) {
    alignas(64) float unrounded[kTileRows * kTileColumns];
    out.c = unrounded;
    out.stride = kTileColumns;
    out.finish = false;
    if (!first && sums != nullptr) out.sum = t.sum, out.sum_stride = t.sum_stride;
    if (!first && sums == nullptr) out.sum = static_cast<const float*>(x.c) + t.row * p.c.row + t.column, out.sum_stride = p.c.row;
    kernel(t.depth, t.a, t.b, t.b_stride, out);
    finish(product, unrounded, t.row, t.rows, t.column, t.columns);
    return;
  }
  float* c = static_cast<float*>(x.c) + t.row * p.c.row + t.column;
  if (p.bias && last) out.bias = static_cast<const float*>(x.bias) + t.column;
  if (sums == nullptr) {  // C holds the partial sums
    out.c = c;
    out.stride = p.c.row;
    if (!first) out.sum = c, out.sum_stride = p.c.row;
  } else {
    out.c = last ? c : t.sum;
    out.stride = last ? p.c.row : t.sum_stride;
    if (!first) out.sum = t.sum, out.sum_stride = t.sum_stride;
  }
  kernel(t.depth, t.a, t.b, t.b_stride, out);
}

}  // namespace st::cpu::ST_ISA
