// c = a / b
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Div {
  template <class B>
  B operator()(const B& a, const B& b) const {
    return a / b;
  }
};

}  // namespace

const Kernel kernel_div = {[](const Call& call) { pointwise<2>("div", call, Div{}); }};

}  // namespace st::cpu::ST_ISA
