// A chunk of a row goes through all stages as floats in the L1; between stages it is rounded to C's type, as it would be in memory.
#include "backend/cpu/gemm/epilogue_rows.h"

#include "backend/cpu/activation_vectors.h"
#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/float_rows.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kChunk = 256;  // floats; four of them and what they are made of fit the L1

void round_to(DType type, float* x, int64_t n) {
  if (type == DType::bf16) {
    for (int64_t i = 0; i < n; ++i) x[i] = widen(narrow<bf16>(x[i]));
  } else if (type == DType::f16) {
    for (int64_t i = 0; i < n; ++i) x[i] = widen(narrow<f16>(x[i]));
  }
}

template <class F>
void each_lane(const F& f, float* x, int64_t n) {
  each_vector<float>(n, [&](int64_t i, int64_t count) { store_part(x + i, F32(f(load_part(x + i, count, 1.0F))), count); });
}

/// x = dy in, dx out.
template <class F>
void each_lane(const F& f, const float* at, float* x, int64_t n) {
  each_vector<float>(n, [&](int64_t i, int64_t count) {
    store_part(x + i, F32(f(load_part(at + i, count, 1.0F), load_part(x + i, count, 1.0F))), count);
  });
}

void activate(GemmActivation activation, float* x, int64_t n) {
  switch (activation) {
    case GemmActivation::none:
      return;
    case GemmActivation::relu:
      return each_lane(Relu{}, x, n);
    case GemmActivation::gelu_tanh:
      return each_lane(GeluTanh{}, x, n);
    case GemmActivation::gelu_erf:
      return each_lane(GeluErf{}, x, n);
    case GemmActivation::silu:
      return each_lane(Silu{}, x, n);
  }
}

void times_derivative(GemmActivation activation, const float* at, float* x, int64_t n) {
  switch (activation) {
    case GemmActivation::none:
      return;
    case GemmActivation::relu:
      return each_lane(ReluBackward{}, at, x, n);
    case GemmActivation::gelu_tanh:
      return each_lane(GeluTanhBackward{}, at, x, n);
    case GemmActivation::gelu_erf:
      return each_lane(GeluErfBackward{}, at, x, n);
    case GemmActivation::silu:
      return each_lane(SiluBackward{}, at, x, n);
  }
}

}  // namespace

void apply_epilogue(const GemmEpilogue& e, const EpiloguePiece& piece) {
  alignas(64) float x[kChunk], other[kChunk];
  const auto place = [](MatrixStrides at, int64_t row, int64_t column) { return row * at.row + column * at.column; };
  for (int64_t row = piece.row; row < piece.row + piece.rows; ++row) {
    for (int64_t column = piece.column; column < piece.column + piece.columns; column += kChunk) {
      const int64_t n = std::min(kChunk, piece.column + piece.columns - column);
      const auto read_side = [&](const GemmSide& side) {
        read_floats(side.data, piece.type, place(side.at, row, column), side.at.column, n, other);
      };
      const int64_t at = place(piece.at, row, column);
      read_floats(piece.c, piece.type, at, piece.at.column, n, x);
      if (e.pre_activation.data != nullptr)
        write_floats(x, n, e.pre_activation.data, piece.type, place(e.pre_activation.at, row, column), e.pre_activation.at.column);
      if (e.derivative_at.data != nullptr) {
        read_side(e.derivative_at);
        times_derivative(e.activation, other, x, n);
      } else {
        activate(e.activation, x, n);
      }
      if (e.residual.data != nullptr) {
        round_to(piece.type, x, n);
        read_side(e.residual);
        for (int64_t i = 0; i < n; ++i) x[i] += other[i];
      }
      write_floats(x, n, piece.c, piece.type, at, piece.at.column);
    }
  }
}

void sum_columns(const GemmProblem& p, const void* c, void* sums, Workers& workers) {
  constexpr int64_t kColumns = 64;
  const int64_t rows = p.batch * p.m;
  workers.run_range(p.n, kColumns, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    double total[kColumns] = {};
    float block[kColumns], row[kColumns];
    for (int64_t first = 0; first < rows; first += kRowBlock) {
      std::fill_n(block, n, 0.0F);
      for (int64_t r = first; r < std::min(rows, first + kRowBlock); ++r) {
        read_floats(c, p.c_type, r / p.m * p.c_batch + r % p.m * p.c.row + begin * p.c.column, p.c.column, n, row);
        for (int64_t i = 0; i < n; ++i) block[i] += row[i];
      }
      for (int64_t i = 0; i < n; ++i) total[i] += double{block[i]};
    }
    for (int64_t i = 0; i < n; ++i) block[i] = static_cast<float>(total[i]);
    write_floats(block, n, sums, p.c_type, begin, 1);
  });
}

}  // namespace st::cpu::ST_ISA
