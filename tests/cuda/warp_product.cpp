#include "warp_product.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "base/float16.h"

namespace st::simulated {
namespace {

constexpr int kFragmentRows = 16, kFragmentColumns = 8, kFragmentDepth = 16;
using Line = float __attribute__((vector_size(kFragmentColumns * sizeof(float))));

/// By PTX ISA's tables (runtime/backend/cuda/device/mma.h), for blocks `row` of A and `column` of B.
template <bool kBf16>
struct WarpProduct {
  const Fragments* const* lanes;

  [[gnu::always_inline]] static float number_of(uint32_t pair, int which) {
    const auto bits = static_cast<uint16_t>(pair >> 16 * which);
    return kBf16 ? f32_of_bf16(bits) : f32_of_f16(bits);
  }
  void read_a(int row, float (&a)[kFragmentRows][kFragmentDepth]) const {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int part = 0; part < 4; ++part)
        for (int i = 0; i < 2; ++i)
          a[lane / 4 + part % 2 * 8][lane % 4 * 2 + part / 2 * 8 + i] = number_of(lanes[lane]->a[row * 4 + part], i);
  }
  void read_b(int column, Line (&b)[kFragmentDepth]) const {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int part = 0; part < 2; ++part)
        for (int i = 0; i < 2; ++i) b[lane % 4 * 2 + part * 8 + i][lane / 4] = number_of(lanes[lane]->b[column * 2 + part], i);
  }
  void add(int row, int column, const Line (&sums)[kFragmentRows]) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      float* const mine = lanes[lane]->sums + (row * lanes[lane]->columns + column) * 4;
      for (int part = 0; part < 4; ++part) mine[part] += sums[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
    }
  }
  void run() const {
    constexpr int kMostColumns = 16;
    const int rows = lanes[0]->rows, columns = lanes[0]->columns;
    if (columns > kMostColumns) throw std::runtime_error("multiply_add: " + std::to_string(columns) + " blocks of columns");
    Line b[kMostColumns][kFragmentDepth];
    for (int column = 0; column < columns; ++column) read_b(column, b[column]);
    for (int row = 0; row < rows; ++row) {
      float a[kFragmentRows][kFragmentDepth];
      read_a(row, a);
      for (int column = 0; column < columns; ++column) {
        Line sums[kFragmentRows];
        for (int i = 0; i < kFragmentRows; ++i) {
          Line sum = {};
          for (int k = 0; k < kFragmentDepth; ++k) sum += a[i][k] * b[column][k];
          sums[i] = sum;
        }
        add(row, column, sums);
      }
    }
  }
};

constexpr int kOuterColumns = 4;

template <class S>
[[gnu::always_inline]] inline void add_outer(S* sums, const S* a, const S* b, int rows) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < kOuterColumns; ++j) sums[i * kOuterColumns + j] = std::fma(a[i], b[j], sums[i * kOuterColumns + j]);
}
/// By the processor's instructions instead of a function for each: the same bits.
template <class S>
[[gnu::target("avx,fma")]] void add_outer_by_fma(S* sums, const S* a, const S* b, int rows) {
  add_outer(sums, a, b, rows);
}
template <class S>
void add_outer_anywhere(S* sums, const S* a, const S* b, int rows) {
  static const bool has_fma = __builtin_cpu_supports("fma") != 0;
  has_fma ? add_outer_by_fma(sums, a, b, rows) : add_outer(sums, a, b, rows);
}

}  // namespace

void multiply_fragments(const Fragments* const* lanes) {
  lanes[0]->is_bf16 ? WarpProduct<true>{lanes}.run() : WarpProduct<false>{lanes}.run();
}

void add_outer_product(float* sums, const float* a, const float* b, int rows) { add_outer_anywhere(sums, a, b, rows); }
void add_outer_product(double* sums, const double* a, const double* b, int rows) { add_outer_anywhere(sums, a, b, rows); }

}  // namespace st::simulated
