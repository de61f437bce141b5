// The table of a set with its own bf16 products: AVX-512's, except for the ops that are products.
#include "backend/cpu/kernels.h"
#include "backend/cpu/table.h"

#define ST_JOIN_(a, b) a##b
#define ST_JOIN(a, b) ST_JOIN_(a, b)

extern "C" const st::OpTable* ST_JOIN(st_cpu_table_, ST_ISA)() {
  using namespace st::cpu::ST_ISA;
  static const st::OpTable table = [] {
    st::OpTable own = *st_cpu_table_avx512();
    own[static_cast<size_t>(st::Op::linear)] = kernel_linear;
    own[static_cast<size_t>(st::Op::matmul)] = kernel_matmul;
    own[static_cast<size_t>(st::Op::fused_linear)] = kernel_fused_linear;
    own[static_cast<size_t>(st::Op::pack)] = kernel_pack;
    return own;
  }();
  return &table;
}
