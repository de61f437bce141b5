// y = e^x
#include "backend/cpu/pointwise.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

struct Exp {
  template <class B>
  ST_VECTOR_INLINE B operator()(const B& x) const {
    return exp_of(x);
  }
};

}  // namespace

const Kernel kernel_exp = {[](const Call& call) { pointwise<1>("exp", call, Exp{}); }};

}  // namespace st::cpu::ST_ISA
