// The table of this instruction set, from ops.def. Views have empty rows: the executor binds them without a call.
#include "backend/cpu/table.h"

#include "backend/cpu/kernels.h"

#define ST_JOIN_(a, b) a##b
#define ST_JOIN(a, b) ST_JOIN_(a, b)

namespace st::cpu::ST_ISA {

const Kernel kernel_load;
const Kernel kernel_reshape;

}  // namespace st::cpu::ST_ISA

extern "C" const st::OpTable* ST_JOIN(st_cpu_table_, ST_ISA)() {
  using namespace st::cpu::ST_ISA;
  static const st::OpTable table = {
#define ST_OP(name, ...) kernel_##name,
#include "ir/ops.def"
#undef ST_OP
  };
  return &table;
}
