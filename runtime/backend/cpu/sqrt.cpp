// y = sqrt x
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Sqrt {
  template <class B>
  B operator()(const B& x) const {
    return xsimd::sqrt(x);
  }
};

}  // namespace

const Kernel kernel_sqrt = {[](const Call& call) { pointwise<1>("sqrt", call, Sqrt{}); }};

}  // namespace st::cpu::ST_ISA
