// c = a + b
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Add {
  template <class B>
  B operator()(const B& a, const B& b) const {
    return a + b;
  }
  template <class T>
  static T whole(T a, T b) {
    return static_cast<T>(bits_of(a) + bits_of(b));
  }
};

}  // namespace

const Kernel kernel_add = {[](const Call& call) { pointwise<2>("add", call, Add{}); }};

}  // namespace st::cpu::ST_ISA
