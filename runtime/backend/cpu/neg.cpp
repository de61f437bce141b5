// y = -x
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Neg {
  template <class B>
  B operator()(const B& x) const {
    return -x;
  }
};

}  // namespace

const Kernel kernel_neg = {[](const Call& call) { pointwise<1>("neg", call, Neg{}); }, nullptr};

}  // namespace st::cpu::ST_ISA
