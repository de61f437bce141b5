// torch.optim.Muon (Jordan 2024) for a matrix [rows, columns]. With g = gradient * factor:
//   b += (1 - momentum) (g - b);  u = nesterov ? g + momentum (b - g) : b
//   X = u / max(|u|, ns_epsilon);  ns_steps times: G = X X^T, X = 3.4445 X + (-4.775 G + 2.0315 G G) X
//   p *= 1 - lr decay;  p -= lr r X, with r = sqrt(max(1, rows / columns)) or, to match AdamW's size, 0.2 sqrt(max(rows, columns))
// With more rows than columns it uses X^T X and products from the right: the smaller Gram matrix. X is f32 whatever the parameter's type;
// torch iterates in bf16. Workspace: X twice, G, the polynomial of G, sums of squares, and the products' own workspace.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/muon_iteration.h"
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

void multiply(const GemmProblem& p, const float* a, const float* b, float* c, std::span<std::byte> workspace, Workers& workers) {
  GemmOperands operands;
  operands.a = a, operands.b = b, operands.c = c;
  gemm(p, gemm_schedule(p), operands, workspace, workers);
}

void copy(const float* from, float* to, int64_t n, Workers& workers) {
  workers.run_range(n, kGrain, [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

/// Updates the momentum and writes the direction, of unit norm, to x.
template <class P>
void take_direction(const Call& call, const UpdateInputs<P>& inputs, float* x, double* squares) {
  using B = Batch<P>;
  const double momentum = call.attrs->real("momentum");
  const bool nesterov = call.attrs->flag("nesterov");
  const B keep(static_cast<P>(momentum)), take(static_cast<P>(1 - momentum)), most(kMostGradient<float>);
  P* const buffer = call.writes[1].as<P>();
  const int64_t n = call.writes[0].elements();
  call.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 1024;
    alignas(64) P room[kBlock], direction[kBlock];
    double sum = 0;
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t length = std::min(kBlock, end - from);
      const P* const gradient = gradient_of(call.in[0], from, length, room);
      each_vector<P>(length, [&](int64_t i, int64_t count) {
        const B g = inputs.true_gradient(load_part(gradient + i, count)), b = load_part(buffer + from + i, count);
        const B moved = fma(take, g - b, b);
        store_part(buffer + from + i, moved, count);
        store_part(direction + i, held(nesterov ? fma(keep, moved - g, g) : moved, most), count);
      });
      for (int64_t i = 0; i < length; ++i) {
        x[from + i] = static_cast<float>(direction[i]);
        sum += static_cast<double>(x[from + i]) * static_cast<double>(x[from + i]);
      }
    }
    squares[begin / kGrain] = sum;
  });
  double sum = 0;
  for (int64_t piece = 0; piece * kGrain < n; ++piece) sum += squares[piece];
  const auto scale = static_cast<float>(1 / std::max({std::sqrt(sum), call.attrs->real("ns_epsilon"), kLeastEpsilon<float>}));
  call.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] *= scale;
  });
}

template <class P>
void muon_of(const Call& call) {
  const MuonIteration it(call.writes[0].shape);
  const UpdateInputs<P> inputs(call, kMostGradient<float>);
  const int64_t n = it.rows * it.columns;
  auto* x = reinterpret_cast<float*>(call.workspace.data());
  float* y = x + aligned(n);
  float* const gram = y + aligned(n);
  float* const polynomial = gram + aligned(it.side * it.side);
  auto* const squares = reinterpret_cast<double*>(polynomial + aligned(it.side * it.side));
  const auto scratch = call.workspace.subspan(static_cast<size_t>(it.floats()) * sizeof(float));
  take_direction<P>(call, inputs, x, squares);

  const bool wide = it.rows <= it.columns;
  for (int64_t step = 0; step < call.attrs->integer("ns_steps"); ++step) {
    multiply(it.gram, x, x, gram, scratch, *call.workers);
    copy(gram, polynomial, it.side * it.side, *call.workers);
    multiply(it.polynomial, gram, gram, polynomial, scratch, *call.workers);
    copy(x, y, n, *call.workers);
    multiply(it.next, wide ? polynomial : x, wide ? x : polynomial, y, scratch, *call.workers);
    std::swap(x, y);
  }

  const auto rows = static_cast<double>(it.rows), columns = static_cast<double>(it.columns);
  const bool matches = call.attrs->word("adjust_lr") == "match_rms_adamw";
  const double ratio = matches ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  const P shrink = static_cast<P>(inputs.rate * call.attrs->real("weight_decay")), by = static_cast<P>(inputs.rate * ratio);
  P* const parameter = call.writes[0].as<P>();
  call.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) parameter[i] -= shrink * parameter[i] + by * static_cast<P>(x[i]);
  });
}

void run_muon(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("muon", call, [&](auto p) { muon_of<decltype(p)>(call); });
  write_copy(call);
}

}  // namespace

const Kernel kernel_muon = {run_muon};

}  // namespace st::cpu::ST_ISA
