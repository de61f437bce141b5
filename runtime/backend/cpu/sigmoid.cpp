// y = 1 / (1 + e^-x); dx = dy y (1 - y)
#include "backend/cpu/pointwise.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

struct Sigmoid {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return B(T(1)) / (B(T(1)) + exp_of(-x));
  }
};

struct SigmoidBackward {
  template <class B>
  B operator()(const B& y, const B& dy) const {
    using T = typename B::value_type;
    return dy * y * (B(T(1)) - y);
  }
};

}  // namespace

const Kernel kernel_sigmoid = {[](const Call& call) { pointwise<1>("sigmoid", call, Sigmoid{}); }};
const Kernel kernel_sigmoid_backward = {[](const Call& call) { pointwise<2>("sigmoid_backward", call, SigmoidBackward{}); }};

}  // namespace st::cpu::ST_ISA
