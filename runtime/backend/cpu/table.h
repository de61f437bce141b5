// The kernel tables, one per instruction set: with gemm/entry.h the only symbols exported from a set's objects.
#pragma once

#include "backend/kernel_call.h"

#define ST_CPU_TABLE(isa) extern "C" const st::OpTable* st_cpu_table_##isa()

ST_CPU_TABLE(portable);
ST_CPU_TABLE(avx2);
ST_CPU_TABLE(avx512);
ST_CPU_TABLE(avx512_bf16);
ST_CPU_TABLE(amx_bf16);
