// y = ln x
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Log {
  template <class B>
  B operator()(const B& x) const {
    return xsimd::log(x);
  }
};

}  // namespace

const Kernel kernel_log = {[](const Call& call) { pointwise<1>("log", call, Log{}); }};

}  // namespace st::cpu::ST_ISA
