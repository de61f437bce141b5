// y = |x|
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Abs {
  template <class B>
  B operator()(const B& x) const {
    return xsimd::abs(x);
  }
};

}  // namespace

const Kernel kernel_abs = {[](const Call& call) { pointwise<1>("abs", call, Abs{}); }};

}  // namespace st::cpu::ST_ISA
