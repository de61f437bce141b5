// y = x s, s = 1 / (1 + e^-x); dx = dy (s + x s (1 - s))
#include "backend/cpu/activation_vectors.h"
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {

const Kernel kernel_silu = {[](const Call& call) { pointwise<1>("silu", call, Silu{}); }};
const Kernel kernel_silu_backward = {[](const Call& call) { pointwise<2>("silu_backward", call, SiluBackward{}); }};

}  // namespace st::cpu::ST_ISA
