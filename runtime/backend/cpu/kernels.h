// Names of all kernels of this instruction set: one per op that computes. A kernel file defines its own with
//   const Kernel kernel_gelu = {run_gelu};   in namespace st::cpu::ST_ISA
// Include only from files compiled per instruction set (ST_ISA given by CMake).
#pragma once

#include "backend/kernel_side.h"

namespace st::cpu::ST_ISA {

#define ST_OP(name, ...) extern const Kernel kernel_##name;
#include "ir/ops.def"
#undef ST_OP

}  // namespace st::cpu::ST_ISA
