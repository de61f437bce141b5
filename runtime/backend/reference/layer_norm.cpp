// layer_norm over the last dimension of size C, and its backward:
//   y = x^ gamma + beta,  x^ = (x - mean) rstd,  rstd = 1 / sqrt(var + epsilon), var of C elements (not C - 1)
//   dx = rstd (g - mean(g) - x^ mean(g x^)),  g = dy gamma;  dgamma = sum over rows of dy x^;  dbeta = sum over rows of dy
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {
namespace {

void layer_norm(const Call& call) {
  const Operand &x = call.in[0], &gamma = call.in[1], &beta = call.in[2];
  const Operand &y = call.out[0], &mean = call.out[1], &rstd = call.out[2];
  const double epsilon = call.attrs->real("epsilon");
  const int64_t columns = x.shape.last(), rows = mean.elements();
  const auto size = static_cast<double>(columns);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * columns;
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < columns; ++c) sum += get(x, row + c);
    const double mu = sum / size;
    for (int64_t c = 0; c < columns; ++c) squares += (get(x, row + c) - mu) * (get(x, row + c) - mu);
    const double scale = 1 / std::sqrt(squares / size + epsilon);
    for (int64_t c = 0; c < columns; ++c) set(y, row + c, (get(x, row + c) - mu) * scale * get(gamma, c) + get(beta, c));
    set(mean, r, mu);
    set(rstd, r, scale);
  }
}

void layer_norm_backward(const Call& call) {
  const Operand &x = call.in[0], &gamma = call.in[1], &mean = call.in[2], &rstd = call.in[3], &dy = call.in[4];
  const Operand &dx = call.out[0], &dgamma = call.out[1], &dbeta = call.out[2];
  const int64_t columns = x.shape.last(), rows = mean.elements();
  const auto size = static_cast<double>(columns);
  // A stored 0 means that rstd is below its type's range, for a row so large that epsilon is negligible.
  const auto root = [&](int64_t r) {
    double squares = 0;
    for (int64_t c = 0; c < columns && get(rstd, r) == 0; ++c) squares += std::pow(get(x, r * columns + c) - get(mean, r), 2);
    return squares > 0 ? 1 / std::sqrt(squares / static_cast<double>(columns)) : get(rstd, r);
  };
  const auto normal = [&](int64_t r, int64_t c) { return (get(x, r * columns + c) - get(mean, r)) * root(r); };

  for (int64_t r = 0; r < rows; ++r) {
    const auto g = [&](int64_t c) { return get(dy, r * columns + c) * get(gamma, c); };
    double sum = 0, moment = 0;
    for (int64_t c = 0; c < columns; ++c) {
      sum += g(c);
      moment += g(c) * normal(r, c);
    }
    for (int64_t c = 0; c < columns; ++c) {
      set(dx, r * columns + c, root(r) * (g(c) - sum / size - normal(r, c) * moment / size));
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    double of_gamma = 0, of_beta = 0;
    for (int64_t r = 0; r < rows; ++r) {
      of_gamma += get(dy, r * columns + c) * normal(r, c);
      of_beta += get(dy, r * columns + c);
    }
    set(dgamma, c, of_gamma);
    set(dbeta, c, of_beta);
  }
}

}  // namespace

constinit const Kernel kernel_layer_norm{layer_norm};
constinit const Kernel kernel_layer_norm_backward{layer_norm_backward};

}  // namespace st::reference
