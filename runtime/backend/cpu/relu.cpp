// y = max(x, 0), NaN stays; dx = y > 0 ? dy : 0
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Relu {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return xsimd::select(x < B(T(0)), B(T(0)), x);
  }
};

struct ReluBackward {
  template <class B>
  B operator()(const B& y, const B& dy) const {
    using T = typename B::value_type;
    return xsimd::select(y > B(T(0)), dy, B(T(0)));
  }
};

}  // namespace

const Kernel kernel_relu = {[](const Call& call) { pointwise<1>("relu", call, Relu{}); }, nullptr};
const Kernel kernel_relu_backward = {[](const Call& call) { pointwise<2>("relu_backward", call, ReluBackward{}); }, nullptr};

}  // namespace st::cpu::ST_ISA
