#include "warp_product.h"

#include <cfenv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/float16.h"

namespace st::simulated {
namespace {

const probe::Model* sums_are_cut_as = nullptr;

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
  /// Calls add(sum, row, column) with each sum of a block, and its place there.
  template <class Add>
  void add_each(int block_row, int block_column, const Add& add) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      float* const mine = lanes[lane]->sums + (block_row * lanes[lane]->columns + block_column) * 4;
      for (int part = 0; part < 4; ++part) add(mine[part], lane / 4 + part / 2 * 8, lane % 4 * 2 + part % 2);
    }
  }
  static float cut_sum(float sum, const float (&a)[kFragmentDepth], const Line (&b)[kFragmentDepth], int column) {
    double exact = sum;
    for (int k = 0; k < kFragmentDepth; ++k) exact += double{a[k]} * double{b[k][column]};
    if (!std::isfinite(exact)) return static_cast<float>(exact);  // the model has numbers alone
    return (*sums_are_cut_as)(sum, kFragmentDepth, [&](int k) { return std::pair(a[k], b[k][column]); });
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
        if (sums_are_cut_as != nullptr) {
          add_each(row, column, [&](float& sum, int i, int j) { sum = cut_sum(sum, a[i], b[column], j); });
          continue;
        }
        Line sums[kFragmentRows];
        for (int i = 0; i < kFragmentRows; ++i) {
          Line sum = {};
          for (int k = 0; k < kFragmentDepth; ++k) sum += a[i][k] * b[column][k];
          sums[i] = sum;
        }
        add_each(row, column, [&](float& sum, int i, int j) { sum += sums[i][j]; });
      }
    }
  }
};

/// Not inlined, so that no arithmetic moves across a change of the mode.
template <bool kBf16>
[[gnu::noinline]] void run_product(const Fragments* const* lanes) {
  WarpProduct<kBf16>{lanes}.run();
}

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

void cut_sums(const probe::Model* as) { sums_are_cut_as = as; }

void multiply_fragments(const Fragments* const* lanes) {
  std::fenv_t mode{};
  if (sums_are_cut_as != nullptr) {  // the model counts subnormals, which the mode of the stream's thread flushes
    std::fegetenv(&mode);
    std::fesetenv(FE_DFL_ENV);
  }
  lanes[0]->is_bf16 ? run_product<true>(lanes) : run_product<false>(lanes);
  if (sums_are_cut_as != nullptr) std::fesetenv(&mode);
}

void add_outer_product(float* sums, const float* a, const float* b, int rows) { add_outer_anywhere(sums, a, b, rows); }
void add_outer_product(double* sums, const double* a, const double* b, int rows) { add_outer_anywhere(sums, a, b, rows); }

}  // namespace st::simulated
