// y = max(x, 0), NaN stays; dx = y > 0 ? dy : 0
#include "backend/cpu/activation_vectors.h"
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {

const Kernel kernel_relu = {[](const Call& call) { pointwise<1>("relu", call, Relu{}); }};
const Kernel kernel_relu_backward = {[](const Call& call) { pointwise<2>("relu_backward", call, ReluBackward{}); }};

}  // namespace st::cpu::ST_ISA
