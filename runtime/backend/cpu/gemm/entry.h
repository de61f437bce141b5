// The entry point of an instruction set's product: one of the few symbols exported from its objects.
#pragma once

#include "gemm/gemm_kernels.h"

#define ST_CPU_GEMM(isa) extern "C" const st::GemmKernels* st_cpu_gemm_##isa()

ST_CPU_GEMM(portable);
ST_CPU_GEMM(avx2);
ST_CPU_GEMM(avx512);
ST_CPU_GEMM(avx512_bf16);
ST_CPU_GEMM(amx_bf16);
