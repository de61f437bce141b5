// y = scale * x + shift; the product is rounded before the sum on every instruction set
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Affine {
  double scale, shift;
  template <class B>
  [[gnu::always_inline]] B operator()(const B& x) const {
    using T = typename B::value_type;
    return B(static_cast<T>(scale)) * x + B(static_cast<T>(shift));
  }
};

}  // namespace

const Kernel kernel_affine = {[](const Call& call) {
  pointwise<1>("affine", call, Affine{call.attrs->real("scale"), call.attrs->real("shift")});
}};

}  // namespace st::cpu::ST_ISA
