// y = tanh x; dx = dy (1 - y^2)
#include "backend/cpu/pointwise.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

struct Tanh {
  template <class B>
  B operator()(const B& x) const {
    return tanh_of(x);
  }
};

struct TanhBackward {
  template <class B>
  B operator()(const B& y, const B& dy) const {
    using T = typename B::value_type;
    return dy * ((B(T(1)) - y) * (B(T(1)) + y));  // 1 - y^2 would cancel near 1
  }
};

}  // namespace

const Kernel kernel_tanh = {[](const Call& call) { pointwise<1>("tanh", call, Tanh{}); }};
const Kernel kernel_tanh_backward = {[](const Call& call) { pointwise<2>("tanh_backward", call, TanhBackward{}); }};

}  // namespace st::cpu::ST_ISA
