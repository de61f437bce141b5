// C = alpha A B + beta C by the formula: each element is one sum in double, read through the strides and rounded once; then the epilogue,
// stage by stage like separate ops.
#include "backend/reference/reference_gemm.h"

#include "backend/reference/activation_values.h"
#include "backend/reference/elements.h"

namespace st::reference {
namespace {

Operand elements_of(const void* data, DType type) { return {address_of(data), type, {}}; }

int64_t element_offset(int64_t entry, int64_t step, MatrixStrides at, int64_t row, int64_t column) {
  return entry * step + row * at.row + column * at.column;
}

double activated(GemmActivation activation, double x) {
  switch (activation) {
    case GemmActivation::relu:
      return relu(x);
    case GemmActivation::gelu_tanh:
      return gelu_tanh(x);
    case GemmActivation::gelu_erf:
      return gelu_erf(x);
    case GemmActivation::silu:
      return silu(x);
    case GemmActivation::none:
      break;
  }
  return x;
}

double times_slope(GemmActivation activation, double x, double dy) {
  switch (activation) {
    case GemmActivation::relu:
      return x > 0 ? dy : 0;
    case GemmActivation::gelu_tanh:
      return dy * slope_tanh(x);
    case GemmActivation::gelu_erf:
      return dy * slope_erf(x);
    case GemmActivation::silu:
      return silu_backward(x, dy);
    case GemmActivation::none:
      break;
  }
  return dy;
}

TileSchedule schedule_of(const GemmProblem& p, const TileSchedule&) {
  TileSchedule s;
  s.mr = s.nr = 1;
  s.mc = s.block_m = std::max<int64_t>(p.m, 1);
  s.nc = s.block_n = std::max<int64_t>(p.n, 1);
  s.kc = std::max<int64_t>(p.k, 1);
  s.b = Packing::in_place;
  return runs_transposed(p) ? transposed(s) : s;
}

int64_t no_workspace(const GemmProblem&, const TileSchedule&, int) { return 0; }

int64_t packed_bytes(const GemmProblem& p, const TileSchedule&) { return elements_of_b(p) * 8; }

/// The elements in row-major order as doubles, one matrix after the other.
void pack(const GemmProblem& p, const TileSchedule&, const void* b, std::byte* to, Workers&) {
  auto* packed = reinterpret_cast<double*>(to);
  const Operand from = elements_of(b, p.b_type);
  for (int64_t i = 0; i < elements_of_b(p); ++i)
    packed[i] = get(from, element_offset(i / (p.k * p.n), p.b_batch, p.b, i / p.n % p.k, i % p.n));
}

/// One matrix of the batch.
class Entry {
 public:
  Entry(const GemmProblem& p, const GemmOperands& x, int64_t entry)
      : p_(p), x_(x), entry_(entry), a_(elements_of(x.a, p.a_type)), b_(elements_of(x.b, p.b_type)), c_(elements_of(x.c, p.c_type)) {}

  void compute(int64_t row, int64_t column) const {
    double value = static_cast<double>(p_.alpha) * sum(row, column);
    const int64_t at = element_offset(entry_, p_.c_batch, p_.c, row, column);
    if (p_.beta != 0) value += static_cast<double>(p_.beta) * get(c_, at);
    if (p_.bias) value += get(elements_of(x_.bias, p_.c_type), column);
    set(c_, at, value);
    if (x_.epilogue != nullptr) finish(*x_.epilogue, at, row, column);
  }

 private:
  double sum(int64_t row, int64_t column) const {
    double total = 0;
    const auto* packed = reinterpret_cast<const double*>(x_.packed_b);
    const int64_t matrix = p_.b_batch == 0 ? 0 : entry_;
    for (int64_t k = 0; k < p_.k; ++k) {
      const double b =
          packed != nullptr ? packed[(matrix * p_.k + k) * p_.n + column] : get(b_, element_offset(entry_, p_.b_batch, p_.b, k, column));
      total += get(a_, element_offset(entry_, p_.a_batch, p_.a, row, k)) * b;
    }
    return total;
  }

  void finish(const GemmEpilogue& e, int64_t at, int64_t row, int64_t column) const {
    const auto side = [&](const GemmSide& s) { return elements_of(s.data, p_.c_type); };
    const auto there = [&](const GemmSide& s) { return element_offset(entry_, s.batch, s.at, row, column); };
    if (e.pre_activation.data != nullptr) set(side(e.pre_activation), there(e.pre_activation), get(c_, at));
    if (e.derivative_at.data != nullptr) {
      set(c_, at, times_slope(e.activation, get(side(e.derivative_at), there(e.derivative_at)), get(c_, at)));
    } else {
      set(c_, at, activated(e.activation, get(c_, at)));
    }
    if (e.residual.data != nullptr) set(c_, at, get(c_, at) + get(side(e.residual), there(e.residual)));
  }

  const GemmProblem& p_;
  const GemmOperands& x_;
  int64_t entry_;
  Operand a_, b_, c_;
};

void sum_columns(const GemmProblem& p, const GemmOperands& x) {
  for (int64_t column = 0; column < p.n; ++column) {
    double total = 0;
    for (int64_t i = 0; i < p.batch * p.m; ++i)
      total += get(elements_of(x.c, p.c_type), element_offset(i / p.m, p.c_batch, p.c, i % p.m, column));
    set(elements_of(x.epilogue->column_sums, p.c_type), column, total);
  }
}

void run(const GemmProblem& p, const TileSchedule&, const GemmOperands& x, std::span<std::byte>, Workers&) {
  for (int64_t entry = 0; entry < p.batch; ++entry) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) Entry(p, x, entry).compute(row, column);
    }
  }
  if (x.epilogue != nullptr && x.epilogue->column_sums != nullptr) sum_columns(p, x);
}

}  // namespace

const GemmKernels& gemm_kernels() {
  static constexpr GemmKernels kKernels = {schedule_of, no_workspace, run, packed_bytes, pack};
  return kKernels;
}

}  // namespace st::reference
