// gradient_norm: L2 norm of all gradients together, in the order of backend/gradient_norm_order.h, and whether every element is finite.
// The finite check looks at the elements, not at the sum of squares: that may overflow without any of them being infinite.
#include <algorithm>

#include "backend/gradient_norm_order.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_gradient_norm{[](const Call& call) {
  using namespace gradient_norm_order;
  double squares = 0;
  bool finite = true;
  for (const Operand& gradient : call.in) {
    BlockTree tree;
    for (int64_t from = 0; from < gradient.elements(); from += kBlock) {
      tree.add(sum_of_block(std::min(kBlock, gradient.elements() - from), [&](int64_t i) {
        const double g = get(gradient, from + i);
        finite = finite && std::isfinite(g);
        return g;
      }));
    }
    squares += tree.sum();
  }
  set(call.out[0], 0, std::sqrt(squares));
  set_integer(call.out[1], 0, finite ? 1 : 0);
}};

}  // namespace st::reference
