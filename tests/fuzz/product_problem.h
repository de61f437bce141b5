// A random product: sizes near the edges of tiles and of blocks of K, layouts with gaps, types, an epilogue, and values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "gemm/epilogue.h"
#include "gemm/problem.h"
#include "gemm/schedule.h"
#include "product_draw.h"

namespace st::fuzz {

/// The layout of a batch of matrices.
struct Placing {
  int64_t rows = 0, columns = 0, batch = 1;
  MatrixStrides at;
  int64_t step = 0;
  DType type = DType::f32;

  int64_t count() const { return batch * rows * columns; }
  int64_t extent() const {  // elements from the first to the last
    return count() == 0 ? 0 : (rows - 1) * at.row + (columns - 1) * at.column + (batch - 1) * step + 1;
  }
  /// visit(place) for each element, row by row.
  template <class Visit>
  void each(Visit visit) const {
    for (int64_t matrix = 0; matrix < batch; ++matrix)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) visit(matrix * step + i * at.row + j * at.column);
  }
};

Placing place_of_a(const GemmProblem& problem);  // one matrix if the batch shares it
Placing place_of_b(const GemmProblem& problem);
Placing place_of_c(const GemmProblem& problem);
/// Strides and a batch step for matrices like C. `general`: how often neither stride is 1; `columns`: how often columns are contiguous.
Placing draw_place(Draw& draw, const Placing& like, double columns, double general);

/// An element's bits, their value as a float, and a float rounded to the type.
uint32_t bits_at(const std::byte* data, DType type, int64_t at);
float value_of(uint32_t bits, DType type);
void put(std::byte* data, DType type, int64_t at, float value);
float rounded(DType type, double value);

/// The operations fused into the product.
struct Stages {
  GemmActivation activation = GemmActivation::none;
  bool pre_activation = false, derivative = false, residual = false, column_sums = false;
  bool any() const { return activation != GemmActivation::none || pre_activation || derivative || residual || column_sums; }
};

/// The operands' elements row by row, in any layout.
struct Contents {
  std::vector<float> a, b, c, bias, derivative, residual;
};

struct ProductProblem {
  GemmProblem gemm;
  Stages stages;
  Contents contents;
  bool exact = false;    // small integers: each sum is exact, so the order of addition changes no bit
  bool special = false;  // infinities, NaN and zeros among the values
};

/// nullopt if the draw gives no valid problem: a layout with overlapping elements, or too much memory.
std::optional<ProductProblem> draw_product(Draw& draw, bool mostly_bf16);
int64_t draw_size(Draw& draw);  // of M, N
/// Tiles that a caller requests, including odd sizes.
TileSchedule draw_wish(Draw& draw);

std::string text_of(const ProductProblem& product);
std::string text_of(const GemmProblem& problem);

}  // namespace st::fuzz
