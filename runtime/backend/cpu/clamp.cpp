// y = min(max(x, low), high); NaN stays
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Clamp {
  double low, high;
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    const B bottom(static_cast<T>(low)), top(static_cast<T>(high));
    const B raised = xsimd::select(x < bottom, bottom, x);
    return xsimd::select(raised > top, top, raised);
  }
};

}  // namespace

const Kernel kernel_clamp = {[](const Call& call) {
  pointwise<1>("clamp", call, Clamp{call.attrs->real("low"), call.attrs->real("high")});
}};

}  // namespace st::cpu::ST_ISA
