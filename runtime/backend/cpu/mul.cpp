// c = a b
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

struct Mul {
  template <class B>
  B operator()(const B& a, const B& b) const {
    return a * b;
  }
  template <class T>
  static T whole(T a, T b) {
    return static_cast<T>(uint64_t{bits_of(a)} * bits_of(b));  // 64 bits: a narrower unsigned type would be promoted to int
  }
};

}  // namespace

const Kernel kernel_mul = {[](const Call& call) { pointwise<2>("mul", call, Mul{}); }};

}  // namespace st::cpu::ST_ISA
