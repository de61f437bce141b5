list(APPEND ST_CPU_KERNELS gemm/few_rows.cpp gemm/gemm.cpp gemm/product.cpp gemm/small_product.cpp attention_backward.cpp)
