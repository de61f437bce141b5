// torch.optim.Muon (Jordan 2024) for a matrix [rows, columns]. With g = gradient * factor:
//   b += (1 - momentum) (g - b);  u = nesterov ? g + momentum (b - g) : b
//   X = u / max(|u|, ns_epsilon);  ns_steps times: G = X X^T, X = 3.4445 X + (-4.775 G + 2.0315 G G) X
//   p *= 1 - lr decay;  p -= lr r X, with r = sqrt(max(1, rows / columns)) or, to match AdamW's size, 0.2 sqrt(max(rows, columns))
// With more rows than columns it uses X^T X and products from the right: the smaller Gram matrix. X is f32 whatever the parameter's type;
// torch iterates in bf16. Workspace: X twice, G, the polynomial of G, sums of squares, and the products' own workspace.
// muon_direction computes b and u of a piece, muon_step the rest from the u of all pieces, each as muon does.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/muon_iteration.h"
#include "backend/cpu/optimizer_pass.h"
#include "backend/piece_parts.h"

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

/// Updates the momentum and calls take(first element, direction, how many) for the direction in blocks, from one task for every kGrain
/// elements.
template <class P, class Take>
void move_momentum(const Call& call, const UpdateInputs<P>& inputs, const Operand& momenta, const Take& take) {
  using B = Batch<P>;
  const double momentum = call.attrs->real("momentum");
  const bool nesterov = call.attrs->flag("nesterov");
  const B keep(static_cast<P>(momentum)), add(static_cast<P>(1 - momentum)), most(kMostGradient<float>);
  P* const buffer = as<P>(momenta);
  call.workers->run_range(momenta.elements(), kGrain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 1024;
    alignas(64) P room[kBlock], direction[kBlock];
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t length = std::min(kBlock, end - from);
      const P* const gradient = gradient_of(call.in[0], from, length, room);
      each_vector<P>(length, [&](int64_t i, int64_t count) {
        const B g = inputs.true_gradient(load_part(gradient + i, count)), b = load_part(buffer + from + i, count);
        const B moved = fma(add, g - b, b);
        store_part(buffer + from + i, moved, count);
        store_part(direction + i, held(nesterov ? fma(keep, moved - g, g) : moved, most), count);
      });
      take(from, direction, length);
    }
  });
}

double sum_of_squares(const float* x, int64_t n, double sum = 0) {
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

/// X of a matrix, in the workspace, and its iteration.
class Orthogonal {
 public:
  Orthogonal(const Call& call, const Shape& matrix)
      : call_(call),
        it_(matrix),
        x_(reinterpret_cast<float*>(pointer_to(call.workspace))),
        y_(x_ + aligned(elements())),
        gram_(y_ + aligned(elements())),
        polynomial_(gram_ + aligned(it_.side * it_.side)),
        squares_(reinterpret_cast<double*>(polynomial_ + aligned(it_.side * it_.side))),
        scratch_(workspace_of(call).subspan(static_cast<size_t>(it_.floats()) * sizeof(float))) {}

  int64_t elements() const { return it_.rows * it_.columns; }
  float* x() const { return x_; }
  double& squares_of_task(int64_t begin) const { return squares_[begin / kGrain]; }

  void run() {
    const int64_t n = elements();
    double sum = 0;
    for (int64_t task = 0; task * kGrain < n; ++task) sum += squares_[task];
    const auto scale = static_cast<float>(1 / std::max({std::sqrt(sum), call_.attrs->real("ns_epsilon"), kLeastEpsilon<float>}));
    call_.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) x_[i] *= scale;
    });
    const bool wide = it_.rows <= it_.columns;
    for (int64_t step = 0; step < call_.attrs->integer("ns_steps"); ++step) {
      multiply(it_.gram, x_, x_, gram_, scratch_, *call_.workers);
      copy(gram_, polynomial_, it_.side * it_.side, *call_.workers);
      multiply(it_.polynomial, gram_, gram_, polynomial_, scratch_, *call_.workers);
      copy(x_, y_, n, *call_.workers);
      multiply(it_.next, wide ? polynomial_ : x_, wide ? x_ : polynomial_, y_, scratch_, *call_.workers);
      std::swap(x_, y_);
    }
  }

  double ratio() const {
    const auto rows = static_cast<double>(it_.rows), columns = static_cast<double>(it_.columns);
    const bool matches = call_.attrs->word("adjust_lr") == "match_rms_adamw";
    return matches ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  }

 private:
  const Call& call_;
  MuonIteration it_;
  float *x_, *y_, *gram_, *polynomial_;
  double* squares_;
  std::span<std::byte> scratch_;
};

template <class P>
struct MuonStep {
  MuonStep(const Call& call, const UpdateInputs<P>& inputs, double ratio)
      : parameter(as<P>(call.writes[0])),
        shrink(static_cast<P>(inputs.rate * call.attrs->real("weight_decay"))),
        by(static_cast<P>(inputs.rate * ratio)) {}

  void run(int64_t first, const float* x, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) parameter[first + i] -= shrink * parameter[first + i] + by * static_cast<P>(x[i]);
  }

  P* parameter;
  P shrink, by;
};

template <class P>
void muon_of(const Call& call) {
  const UpdateInputs<P> inputs(call, kMostGradient<float>);
  Orthogonal of(call, call.writes[0].shape);
  float* const x = of.x();
  move_momentum<P>(call, inputs, call.writes[1], [&](int64_t from, const P* direction, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[from + i] = static_cast<float>(direction[i]);
    double& sum = of.squares_of_task(from);
    sum = sum_of_squares(x + from, n, from % kGrain == 0 ? 0 : sum);
  });
  of.run();
  const MuonStep<P> step(call, inputs, of.ratio());
  call.workers->run_range(of.elements(), kGrain, [&](int64_t begin, int64_t end) { step.run(begin, of.x() + begin, end - begin); });
}

void run_muon(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("muon", call, [&](auto p) { muon_of<decltype(p)>(call); });
  write_copy(call);
}

// --- of a piece

template <class P>
void direction_of(const Call& call) {
  P* const out = as<P>(call.out[0]);
  if (is_skipped(call)) {
    std::fill_n(out, call.out[0].elements(), P(0));
    return;
  }
  move_momentum<P>(call, UpdateInputs<P>(call, kMostGradient<float>), call.writes[0],
                   [&](int64_t from, const P* direction, int64_t n) { std::copy_n(direction, n, out + from); });
}

template <class P>
void step_of(const Call& call) {
  const UpdateInputs<P> inputs(call, kMostGradient<float>);
  const PieceParts piece(call.writes[0].shape, *call.attrs);
  Orthogonal of(call, {piece.whole_rows(), piece.whole_columns()});
  float* const x = of.x();
  for (int64_t rank = 0; rank < piece.ranks; ++rank) {
    const P* const directions = as<const P>(call.in[0]) + rank * call.writes[0].elements();
    piece.each_run(rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      for (int64_t i = 0; i < count; ++i) x[in_whole + i] = static_cast<float>(directions[in_piece + i]);
    });
  }
  call.workers->run_range(of.elements(), kGrain,
                          [&](int64_t begin, int64_t end) { of.squares_of_task(begin) = sum_of_squares(x + begin, end - begin); });
  of.run();
  const MuonStep<P> step(call, inputs, of.ratio());
  piece.each_run(piece.rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) { step.run(in_piece, of.x() + in_whole, count); });
}

void run_muon_direction(const Call& call) {
  with_parameter("muon_direction", call, [&](auto p) { direction_of<decltype(p)>(call); });
}

void run_muon_step(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("muon_step", call, [&](auto p) { step_of<decltype(p)>(call); });
  write_copy(call);
}

}  // namespace

const Kernel kernel_muon = {run_muon};
const Kernel kernel_muon_direction = {run_muon_direction};
const Kernel kernel_muon_step = {run_muon_step};

}  // namespace st::cpu::ST_ISA
