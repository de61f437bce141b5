// A chunk of a row goes through all stages as floats in L1; between stages it is rounded to C's type, as it would be in memory. fp32 rows,
// and with AVX-512 bf16 rows, are processed in place, a vector at a time.
#include "backend/cpu/gemm/epilogue_rows.h"

#include "backend/cpu/activation_vectors.h"
#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/float_rows.h"

namespace st::cpu::ST_ISA {
namespace {

#if defined(__AVX512F__)
constexpr bool kTakesHalves = true;
#else
constexpr bool kTakesHalves = false;
#endif
constexpr int64_t kChunk = 256;  // floats; four chunks and their inputs fit L1

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

/// x: dy on entry, dx on return.
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

/// The activation of x, elements i .. i + count - 1 of a row; `at`: the same row of the values at which the derivative is taken.
template <class F>
struct Forward {
  template <class T>
  F32 operator()(const F32& x, const T*, int64_t, int64_t) const {
    return F{}(x);
  }
};
template <class F>
struct Backward {
  template <class T>
  F32 operator()(const F32& dy, const T* at, int64_t i, int64_t count) const {
    return F{}(load_part(at + i, count, 1.0F), dy);
  }
};
struct Nothing {
  template <class T>
  F32 operator()(const F32& x, const T*, int64_t, int64_t) const {
    return x;
  }
};

template <class Body>
void with_stage(const GemmEpilogue& e, const Body& body) {
  const bool forward = e.derivative_at.data == nullptr;
  switch (e.activation) {
    case GemmActivation::none:
      return body(Nothing{});
    case GemmActivation::relu:
      return forward ? body(Forward<Relu>{}) : body(Backward<ReluBackward>{});
    case GemmActivation::gelu_tanh:
      return forward ? body(Forward<GeluTanh>{}) : body(Backward<GeluTanhBackward>{});
    case GemmActivation::gelu_erf:
      return forward ? body(Forward<GeluErf>{}) : body(Backward<GeluErfBackward>{});
    case GemmActivation::silu:
      return forward ? body(Forward<Silu>{}) : body(Backward<SiluBackward>{});
  }
}

bool is_plain(const GemmEpilogue& e, const EpilogueTile& piece) {
  const auto has_unit_columns = [](const GemmSide& side) { return side.data == nullptr || side.at.column == 1; };
  const bool has_kernel = piece.type == DType::f32 || (kTakesHalves && piece.type == DType::bf16);
  return has_kernel && piece.at.column == 1 && has_unit_columns(e.pre_activation) && has_unit_columns(e.derivative_at) &&
         has_unit_columns(e.residual);
}

/// Rounds x as storing it as T and reading it back would.
template <class T>
F32 rounded_to(const F32& x) {
  if constexpr (std::is_same_v<T, float>) return x;
  T image[F32::size];
  store(image, x);
  return load(image);
}

/// Rows of T without gaps: each vector goes through all stages in place. The inputs' next row is prefetched, since a tile's rows are too
/// short and too far apart for the hardware to prefetch.
template <class T>
void finish_plain_rows(const GemmEpilogue& e, const EpilogueTile& piece) {
  with_stage(e, [&](const auto& stage) {
    for (int64_t row = piece.row; row < piece.row + piece.rows; ++row) {
      const auto row_of = [&](void* data, MatrixStrides at) {
        return data == nullptr ? nullptr : static_cast<T*>(data) + row * at.row + piece.column;
      };
      T* const c = row_of(piece.c, piece.at);
      T* const before = row_of(e.pre_activation.data, e.pre_activation.at);
      const T* const at = row_of(e.derivative_at.data, e.derivative_at.at);
      const T* const residual = row_of(e.residual.data, e.residual.at);
      each_vector<float>(piece.columns, [&](int64_t i, int64_t count) {
        __builtin_prefetch(c + i + piece.at.row);
        F32 x = load_part(c + i, count, 1.0F);
        if (before != nullptr) {
          store_part(before + i, x, count);
        }
        if (at != nullptr) __builtin_prefetch(at + i + e.derivative_at.at.row);
        x = stage(x, at, i, count);
        if (residual != nullptr) {
          __builtin_prefetch(residual + i + e.residual.at.row);
          x = rounded_to<T>(x) + load_part(residual + i, count);
        }
        store_part(c + i, x, count);
      });
    }
  });
}

/// sums[j] += row[j] for a block of rows.
template <class T>
void add_row(const T* row, int64_t n, float* sums) {
  each_vector<float>(
      n, [&](int64_t i, int64_t count) { store_part(sums + i, load_part(sums + i, count) + load_part(row + i, count), count); });
}

void add_row(const void* c, DType type, int64_t first, int64_t stride, int64_t n, float* sums) {
  if (stride == 1 && type == DType::f32) return add_row(static_cast<const float*>(c) + first, n, sums);
  if (stride == 1 && type == DType::bf16) return add_row(static_cast<const bf16*>(c) + first, n, sums);
  float row[kChunk];
  read_floats(c, type, first, stride, n, row);
  add_row(row, n, sums);
}

}  // namespace

void apply_epilogue(const GemmEpilogue& e, const EpilogueTile& piece) {
  if (is_plain(e, piece)) {
    if constexpr (kTakesHalves)
      if (piece.type == DType::bf16) return finish_plain_rows<bf16>(e, piece);
    return finish_plain_rows<float>(e, piece);
  }
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
  const int64_t rows = p.batch * p.m;
  workers.run_range(p.n, kChunk, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    double total[kChunk] = {};
    alignas(64) float block[kChunk];
    for (int64_t first = 0; first < rows; first += kRowBlock) {
      std::fill_n(block, n, 0.0F);
      for (int64_t r = first; r < std::min(rows, first + kRowBlock); ++r)
        add_row(c, p.c_type, r / p.m * p.c_batch + r % p.m * p.c.row + begin * p.c.column, p.c.column, n, block);
      for (int64_t i = 0; i < n; ++i) total[i] += double{block[i]};
    }
    for (int64_t i = 0; i < n; ++i) block[i] = static_cast<float>(total[i]);
    write_floats(block, n, sums, p.c_type, begin, 1);
  });
}

}  // namespace st::cpu::ST_ISA
