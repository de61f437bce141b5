// the host's own op: its callbacks compute, the same on every instruction set
#include "backend/cpu/kernels.h"
#include "backend/host_call.h"

namespace st::cpu::ST_ISA {

const Kernel kernel_host = {call_host_forward};
const Kernel kernel_host_backward = {call_host_backward};

}  // namespace st::cpu::ST_ISA
