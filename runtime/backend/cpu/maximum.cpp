// c = max(a, b); NaN wins
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Maximum {
  template <class B>
  B operator()(const B& a, const B& b) const {
    return xsimd::select((a > b) | xsimd::isnan(a), a, b);
  }
  template <class T>
  static T whole(T a, T b) {
    return a > b ? a : b;
  }
};

}  // namespace

const Kernel kernel_maximum = {[](const Call& call) { pointwise<2>("maximum", call, Maximum{}); }};

}  // namespace st::cpu::ST_ISA
