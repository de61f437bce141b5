// rope: rotates the pair (d, d + D/2) of x [B, T, H, D] by (t + offset) * base^(-2d/D); inverse rotates back, which is its gradient.
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_rope{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const double base = call.attrs->real("base"), direction = call.attrs->flag("inverse") ? -1 : 1;
  const int64_t offset = call.attrs->integer("offset");
  const int64_t times = x.shape[1], heads = x.shape[2], half = x.shape[3] / 2;
  const int64_t rows = x.shape[0] * times * heads;
  for (int64_t r = 0; r < rows; ++r) {
    const auto t = static_cast<double>(r / heads % times + offset);
    for (int64_t d = 0; d < half; ++d) {
      const double angle = direction * t * std::pow(base, -static_cast<double>(d) / static_cast<double>(half));
      const int64_t at = r * 2 * half + d;
      const double a = get(x, at), b = get(x, at + half);
      set(y, at, a * std::cos(angle) - b * std::sin(angle));
      set(y, at + half, b * std::cos(angle) + a * std::sin(angle));
    }
  }
}};

}  // namespace st::reference
