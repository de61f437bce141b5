// muon: torch.optim.Muon (Jordan 2024) on g = gradient * factor of a matrix [rows, columns], in double where torch iterates in bf16:
//   b += (1 - momentum) (g - b);  u = nesterov ? g + momentum (b - g) : b
//   X = u / max(|u|, ns_epsilon), transposed if it has more rows than columns
//   ns_steps times: G = X X^T, X = 3.4445 X + (-4.775 G + 2.0315 G G) X
//   p *= 1 - lr weight_decay;  p -= lr r X, with r = sqrt(max(1, rows / columns)) or, to match AdamW's size, 0.2 sqrt(max(rows, columns))
// muon_direction computes b and u of a piece, muon_step the rest from the u of all pieces.
#include "backend/piece_parts.h"
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

constexpr double kMost = kMostGradient<float>;  // X is f32 in the other backends

/// X of a matrix, in the workspace, and its iteration.
class Orthogonal {
 public:
  Orthogonal(const Call& call, int64_t rows, int64_t columns)
      : attrs_(*call.attrs),
        rows_(rows),
        columns_(columns),
        x_(reinterpret_cast<double*>(pointer_to(call.workspace))),
        y_(x_ + elements()) {}

  int64_t elements() const { return rows_ * columns_; }
  /// Element i of the matrix, row-major.
  double& at(int64_t i) { return x_[rows_ <= columns_ ? i : i % columns_ * rows_ + i / columns_]; }

  void run() {
    const int64_t n = elements(), side = std::min(rows_, columns_), length = std::max(rows_, columns_);
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += at(i) * at(i);
    const double norm = std::max({std::sqrt(squares), attrs_.real("ns_epsilon"), kLeastEpsilon<float>});
    for (int64_t i = 0; i < n; ++i) x_[i] /= norm;
    double* const gram = y_ + n;
    double* const polynomial = gram + side * side;
    for (int64_t step = 0; step < attrs_.integer("ns_steps"); ++step) {
      Product{side, side, length, true}.run(1, x_, x_, 0, gram);
      std::copy(gram, gram + side * side, polynomial);
      Product{side, side, side, false}.run(kQuintic, gram, gram, kCubic, polynomial);
      std::copy(x_, x_ + n, y_);
      Product{side, length, side, false}.run(1, polynomial, x_, kLinear, y_);
      std::swap(x_, y_);
    }
  }

  double ratio() const {
    const double tall = static_cast<double>(rows_) / static_cast<double>(columns_);
    const bool matches = attrs_.word("adjust_lr") == "match_rms_adamw";
    return matches ? 0.2 * std::sqrt(static_cast<double>(std::max(rows_, columns_))) : std::sqrt(std::max(1.0, tall));
  }

 private:
  const Attrs& attrs_;
  int64_t rows_, columns_;
  double *x_, *y_;
};

/// Moves element i of the momentum; u.
double moved(const Call& call, const UpdateInputs& in, const Operand& buffer, int64_t i) {
  const double momentum = call.attrs->real("momentum");
  const double g = std::clamp(in.any_gradient(i), -kMost, kMost), b = get(buffer, i) + (1 - momentum) * (g - get(buffer, i));
  set(buffer, i, b);
  return std::clamp(call.attrs->flag("nesterov") ? g + momentum * (b - g) : b, -kMost, kMost);
}

void step(const UpdateInputs& in, const Operand& parameter, int64_t i, double ratio, double x) {
  set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - in.rate * ratio * x);
}

void muon(const Call& call) {
  const Operand& parameter = call.writes[0];
  if (is_skipped(call) || parameter.elements() == 0) return;
  const UpdateInputs in(call);
  Orthogonal x(call, parameter.shape[0], parameter.shape[1]);
  for (int64_t i = 0; i < x.elements(); ++i) x.at(i) = moved(call, in, call.writes[1], i);
  x.run();
  for (int64_t i = 0; i < x.elements(); ++i) step(in, parameter, i, x.ratio(), x.at(i));
  write_copy(call);
}

void muon_direction(const Call& call) {
  const bool skips = is_skipped(call);
  const UpdateInputs in(call);
  for (int64_t i = 0; i < call.in[0].elements(); ++i) set(call.out[0], i, skips ? 0 : moved(call, in, call.writes[0], i));
}

void muon_step(const Call& call) {
  const Operand &directions = call.in[0], &parameter = call.writes[0];
  if (is_skipped(call) || parameter.elements() == 0) return;
  const UpdateInputs in(call);
  const PieceParts piece(parameter.shape, *call.attrs);
  Orthogonal x(call, piece.whole_rows(), piece.whole_columns());
  for (int64_t rank = 0; rank < piece.ranks; ++rank)
    piece.each_run(rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      for (int64_t i = 0; i < count; ++i) x.at(in_whole + i) = get(directions, rank * parameter.elements() + in_piece + i);
    });
  x.run();
  piece.each_run(piece.rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
    for (int64_t i = 0; i < count; ++i) step(in, parameter, in_piece + i, x.ratio(), x.at(in_whole + i));
  });
  write_copy(call);
}

}  // namespace

constinit const Kernel kernel_muon{muon};
constinit const Kernel kernel_muon_direction{muon_direction};
constinit const Kernel kernel_muon_step{muon_step};

}  // namespace st::reference
