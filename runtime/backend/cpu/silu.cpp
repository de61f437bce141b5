// y = x s, s = 1 / (1 + e^-x); dx = dy (s + x s (1 - s))
#include "backend/cpu/pointwise.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

struct Silu {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return x / (B(T(1)) + exp_of(-x));
  }
};

struct SiluBackward {
  template <class B>
  B operator()(const B& x, const B& dy) const {
    using T = typename B::value_type;
    const B s = B(T(1)) / (B(T(1)) + exp_of(-x));
    return dy * fma(x * s, B(T(1)) - s, s);
  }
};

}  // namespace

const Kernel kernel_silu = {[](const Call& call) { pointwise<1>("silu", call, Silu{}); }, nullptr};
const Kernel kernel_silu_backward = {[](const Call& call) { pointwise<2>("silu_backward", call, SiluBackward{}); }, nullptr};

}  // namespace st::cpu::ST_ISA
