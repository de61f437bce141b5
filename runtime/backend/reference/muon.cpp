// muon: torch.optim.Muon (Jordan 2024) on g = gradient * factor of a matrix [rows, columns], in double where torch iterates in bf16:
//   b += (1 - momentum) (g - b);  u = nesterov ? g + momentum (b - g) : b
//   X = u / max(|u|, ns_epsilon), transposed if it has more rows than columns
//   ns_steps times: G = X X^T, X = 3.4445 X + (-4.775 G + 2.0315 G G) X
//   p *= 1 - lr weight_decay;  p -= lr r X, with r = sqrt(max(1, rows / columns)) or, to match AdamW's size, 0.2 sqrt(max(rows, columns))
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {
namespace {

constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;

/// c = alpha a op(b) + beta c, row-major: a [m, k], op(b) [k, n].
struct Product {
  int64_t m, n, k;
  bool turn_b;
  void run(double alpha, const double* a, const double* b, double beta, double* c) const {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * (turn_b ? b[j * k + l] : b[l * n + j]);
        c[i * n + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * n + j]);
      }
  }
};

void muon(const Call& call) {
  const Operand& parameter = call.writes[0];
  if (is_skipped(call) || parameter.elements() == 0) return;
  const UpdateInputs in(call);
  const Operand& buffer = call.writes[1];
  const int64_t rows = parameter.shape[0], columns = parameter.shape[1], n = rows * columns;
  const int64_t side = std::min(rows, columns), length = std::max(rows, columns);
  const double momentum = call.attrs->real("momentum");
  auto* x = reinterpret_cast<double*>(call.workspace.data());
  double* y = x + n;
  double* const gram = y + n;
  double* const polynomial = gram + side * side;

  const auto place = [&](int64_t i) { return rows <= columns ? i : i % columns * rows + i / columns; };  // position in X of element i
  constexpr double kMost = kMostGradient<float>;                                                         // X is f32 in the other backends
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double g = std::clamp(in.any_gradient(i), -kMost, kMost), b = get(buffer, i) + (1 - momentum) * (g - get(buffer, i));
    set(buffer, i, b);
    const double u = std::clamp(call.attrs->flag("nesterov") ? g + momentum * (b - g) : b, -kMost, kMost);
    x[place(i)] = u;
    squares += u * u;
  }
  const double norm = std::max({std::sqrt(squares), call.attrs->real("ns_epsilon"), kLeastEpsilon<float>});
  for (int64_t i = 0; i < n; ++i) x[i] /= norm;
  for (int64_t step = 0; step < call.attrs->integer("ns_steps"); ++step) {
    Product{side, side, length, true}.run(1, x, x, 0, gram);
    std::copy(gram, gram + side * side, polynomial);
    Product{side, side, side, false}.run(kQuintic, gram, gram, kCubic, polynomial);
    std::copy(x, x + n, y);
    Product{side, length, side, false}.run(1, polynomial, x, kLinear, y);
    std::swap(x, y);
  }

  const bool matches = call.attrs->word("adjust_lr") == "match_rms_adamw";
  const double tall = static_cast<double>(rows) / static_cast<double>(columns);
  const double ratio = matches ? 0.2 * std::sqrt(static_cast<double>(length)) : std::sqrt(std::max(1.0, tall));
  for (int64_t i = 0; i < n; ++i) set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - in.rate * ratio * x[place(i)]);
  write_copy(call);
}

}  // namespace

constinit const Kernel kernel_muon{muon};

}  // namespace st::reference
