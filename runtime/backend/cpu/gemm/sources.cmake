list(APPEND ST_CPU_KERNELS gemm/gemm.cpp gemm/product.cpp attention_backward.cpp)
