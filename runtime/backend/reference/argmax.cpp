// argmax: index of the first largest element along axis; NaN is larger than anything, so the first NaN wins.
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {
namespace {

template <class Element>
int64_t first_largest(int64_t n, Element element) {
  int64_t best = 0;
  for (int64_t a = 0; a < n; ++a) {
    const double x = element(a);
    if (std::isnan(x)) return a;
    if (x > element(best)) best = a;
  }
  return best;
}

}  // namespace

constinit const Kernel kernel_argmax{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const Around around(x.shape, normalize_axis("argmax", call.attrs->integer("axis"), x.shape.rank()));
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) {
      const int64_t best = first_largest(around.axis, [&](int64_t a) { return get(x, around.at(o, a, i)); });
      set_integer(y, o * around.inner + i, best);
    }
  }
}};

}  // namespace st::reference
