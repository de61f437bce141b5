// gradient_norm: L2 norm of all gradients together, in the order of backend/gradient_norm_order.h, and whether every element is finite.
// gradient_squares, norm_of_squares: the same in two halves, for ranks that each have some of the blocks. tensor_squares: between them, for
// stages that each have some of the tensors.
// The finite check reads the elements, not the sum of squares, which may overflow for finite elements.
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

constinit const Kernel kernel_gradient_squares{[](const Call& call) {
  using namespace gradient_norm_order;
  int64_t block = 0;
  for (const Operand& gradient : call.in)
    for (int64_t from = 0; from < gradient.elements(); from += kBlock)
      set(call.out[0], block++,
          sum_of_block(std::min(kBlock, gradient.elements() - from), [&](int64_t i) { return get(gradient, from + i); }));
}};

constinit const Kernel kernel_norm_of_squares{[](const Call& call) {
  const gradient_norm_order::Norm norm = gradient_norm_order::norm_of_squares(as<const double>(call.in[0]), call.attrs->ints("tensors"));
  set(call.out[0], 0, norm.value);
  set_integer(call.out[1], 0, norm.finite ? 1 : 0);
}};

constinit const Kernel kernel_tensor_squares{[](const Call& call) {
  gradient_norm_order::tensor_squares(as<const double>(call.in[0]), call.attrs->ints("tensors"), as<double>(call.out[0]));
}};

}  // namespace st::reference
