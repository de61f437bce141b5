// adafactor: torch.optim.Adafactor (Shazeer and Stern 2018) on g = gradient * factor, at update t from 1. With b = t^beta2_decay,
// rho = min(lr, 1 / sqrt(t)) and rms(x) = |x| / sqrt(elements):
//   alpha = max(epsilon2, rms(p)) rho;  p *= 1 - lr weight_decay
//   over the last two dimensions, for each matrix: r_i += b (mean_j g_ij^2 - r_i);  c_j += b (mean_i g_ij^2 - c_j);
//     v_ij = r_i c_j / max(mean_i r_i, epsilon);  below two dimensions: v += b (g^2 - v)
//   u = g / sqrt(max(v, epsilon^2));  p -= alpha / max(1, rms(u) / clip_threshold) u
// epsilon 0 is the machine epsilon of the parameter's dtype. State: r [..., rows] and c [..., columns], or v.
#include <limits>

#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {
namespace {

struct Factors {
  explicit Factors(const Call& call)
      : columns(call.writes[0].shape.last()),
        rows(call.writes[0].shape[call.writes[0].shape.rank() - 2]),
        row(call.writes[1]),
        column(call.writes[2]) {}

  double variance(int64_t i, double epsilon) const {
    const int64_t r = i / columns, matrix = r / rows;
    double mean = 0;
    for (int64_t k = 0; k < rows; ++k) mean += get(row, matrix * rows + k);
    return get(row, r) * get(column, matrix * columns + i % columns) / std::max(mean / static_cast<double>(rows), epsilon);
  }

  int64_t columns, rows;
  const Operand &row, &column;
};

void update_factors(const Call& call, const UpdateInputs& in, double take) {
  const Factors f(call);
  const int64_t matrices = f.rows * f.columns == 0 ? 0 : call.writes[0].elements() / (f.rows * f.columns);
  const auto square = [&](int64_t matrix, int64_t r, int64_t c) {
    const double g = in.true_gradient((matrix * f.rows + r) * f.columns + c);
    return g * g;
  };
  const auto move = [&](const Operand& state, int64_t i, double to) { set(state, i, get(state, i) + take * (to - get(state, i))); };
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t r = 0; r < f.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < f.columns; ++c) sum += square(m, r, c);
      move(f.row, m * f.rows + r, sum / static_cast<double>(f.columns));
    }
    for (int64_t c = 0; c < f.columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < f.rows; ++r) sum += square(m, r, c);
      move(f.column, m * f.columns + c, sum / static_cast<double>(f.rows));
    }
  }
}

}  // namespace

constinit const Kernel kernel_adafactor{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand& parameter = call.writes[0];
  const int64_t n = parameter.elements();
  if (n == 0) return;
  const double given = call.attrs->real("epsilon");
  const double machine = parameter.dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double epsilon = given > 0 ? given : machine, least = std::max(epsilon * epsilon, in.limits.least_square);
  const double take = std::pow(in.number, call.attrs->real("beta2_decay")), rho = std::min(in.rate, 1 / std::sqrt(in.number));
  const bool factored = parameter.shape.rank() > 1;
  if (factored)
    update_factors(call, in, take);
  else
    for (int64_t i = 0; i < n; ++i) {
      const double g = in.true_gradient(i), v = get(call.writes[1], i);
      set(call.writes[1], i, v + take * (g * g - v));
    }
  const auto direction = [&](int64_t i) {
    const double v = factored ? Factors(call).variance(i, epsilon) : get(call.writes[1], i);
    return in.true_gradient(i) / std::sqrt(std::max(v, least));
  };
  double squares = 0, parameter_squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    squares += direction(i) * direction(i);
    parameter_squares += get(parameter, i) * get(parameter, i);
  }
  const auto rms = [n](double sum) { return std::sqrt(sum / static_cast<double>(n)); };
  const double alpha = std::max(call.attrs->real("epsilon2"), rms(parameter_squares)) * rho;
  const double step = alpha / std::max(1.0, rms(squares) / call.attrs->real("clip_threshold"));
  for (int64_t i = 0; i < n; ++i) set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - step * direction(i));
  write_copy(call);
}};

}  // namespace st::reference
