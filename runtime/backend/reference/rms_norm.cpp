// rms_norm over the last dimension of size C, and its backward:
//   y = x rstd gamma,  rstd = 1 / sqrt(mean(x^2) + epsilon)
//   dx = rstd (g - x^ mean(g x^)),  g = dy gamma, x^ = x rstd;  dgamma = sum over rows of dy x^
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {
namespace {

void rms_norm(const Call& call) {
  const Operand &x = call.in[0], &gamma = call.in[1], &y = call.out[0], &rstd = call.out[1];
  const double epsilon = call.attrs->real("epsilon");
  const int64_t columns = x.shape.last(), rows = rstd.elements();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * columns;
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c) squares += get(x, row + c) * get(x, row + c);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t c = 0; c < columns; ++c) set(y, row + c, get(x, row + c) * scale * get(gamma, c));
    set(rstd, r, scale);
  }
}

void rms_norm_backward(const Call& call) {
  const Operand &x = call.in[0], &gamma = call.in[1], &rstd = call.in[2], &dy = call.in[3];
  const Operand &dx = call.out[0], &dgamma = call.out[1];
  const int64_t columns = x.shape.last(), rows = rstd.elements();
  // A stored 0 means that rstd is below its type's range, for a row so large that epsilon is negligible.
  const auto root = [&](int64_t r) {
    double squares = 0;
    for (int64_t c = 0; c < columns && get(rstd, r) == 0; ++c) squares += std::pow(get(x, r * columns + c), 2);
    return squares > 0 ? 1 / std::sqrt(squares / static_cast<double>(columns)) : get(rstd, r);
  };
  const auto normal = [&](int64_t r, int64_t c) { return get(x, r * columns + c) * root(r); };

  for (int64_t r = 0; r < rows; ++r) {
    const auto g = [&](int64_t c) { return get(dy, r * columns + c) * get(gamma, c); };
    double moment = 0;
    for (int64_t c = 0; c < columns; ++c) moment += g(c) * normal(r, c);
    moment /= static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c) set(dx, r * columns + c, root(r) * (g(c) - normal(r, c) * moment));
  }
  for (int64_t c = 0; c < columns; ++c) {
    double of_gamma = 0;
    for (int64_t r = 0; r < rows; ++r) of_gamma += get(dy, r * columns + c) * normal(r, c);
    set(dgamma, c, of_gamma);
  }
}

}  // namespace

constinit const Kernel kernel_rms_norm{rms_norm};
constinit const Kernel kernel_rms_norm_backward{rms_norm_backward};

}  // namespace st::reference
