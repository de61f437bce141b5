// A random product: sizes about the edges of tiles and pieces of K, layouts with gaps, types, an epilogue, and the numbers in it.
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

/// A batch of matrices in memory.
struct Placing {
  int64_t rows = 0, columns = 0, batch = 1;
  MatrixStrides at;
  int64_t step = 0;
  DType type = DType::f32;

  int64_t count() const { return batch * rows * columns; }
  int64_t extent() const {  // elements from the first to the last
    return count() == 0 ? 0 : (rows - 1) * at.row + (columns - 1) * at.column + (batch - 1) * step + 1;
  }
  /// visit(place) of each element, row by row.
  template <class Visit>
  void each(Visit visit) const {
    for (int64_t matrix = 0; matrix < batch; ++matrix)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) visit(matrix * step + i * at.row + j * at.column);
  }
};

Placing place_of_a(const GemmProblem& problem);  // a matrix that the batch shares is one
Placing place_of_b(const GemmProblem& problem);
Placing place_of_c(const GemmProblem& problem);
/// Strides and a batch step for matrices like C; `general`: how often neither stride is 1, `columns`: how often columns lie in one piece.
Placing draw_place(Draw& draw, const Placing& like, double columns, double general);

/// An element as its bits, as the float that they are, and a float as the type rounds it.
uint32_t bits_at(const std::byte* data, DType type, int64_t at);
float value_of(uint32_t bits, DType type);
void put(std::byte* data, DType type, int64_t at, float value);
float rounded(DType type, double value);

/// What happens to C besides.
struct Stages {
  GemmActivation activation = GemmActivation::none;
  bool pre_activation = false, derivative = false, residual = false, column_sums = false;
  bool any() const { return activation != GemmActivation::none || pre_activation || derivative || residual || column_sums; }
};

/// The operands' elements row by row, whatever their layout.
struct Contents {
  std::vector<float> a, b, c, bias, derivative, residual;
};

struct ProductProblem {
  GemmProblem gemm;
  Stages stages;
  Contents contents;
  bool exact = false;    // small integers: each sum is a float, so no order of adding may change a bit
  bool special = false;  // infinities, NaN and zeros among the numbers
};

/// Nothing where the draw is no problem: a layout in which two elements share a place, or too much memory.
std::optional<ProductProblem> draw_product(Draw& draw, bool mostly_bf16);
int64_t draw_size(Draw& draw);  // of M, N
/// A caller's wish for tiles, odd sizes and all.
TileSchedule draw_wish(Draw& draw);

std::string text_of(const ProductProblem& product);
std::string text_of(const GemmProblem& problem);

}  // namespace st::fuzz
