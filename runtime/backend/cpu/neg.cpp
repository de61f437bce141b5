// y = -x
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Neg {
  template <class B>
  B operator()(const B& x) const {
    return B(-0.0F) - x;  // the vectors' -x is 0 - x on AVX-512, where -0 would be lost
  }
};

}  // namespace

const Kernel kernel_neg = {[](const Call& call) { pointwise<1>("neg", call, Neg{}); }};

}  // namespace st::cpu::ST_ISA
