list(APPEND ST_CPU_KERNELS gemm/gemm.cpp attention_backward.cpp)
