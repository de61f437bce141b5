list(APPEND ST_CPU_KERNELS gemm/few_rows.cpp gemm/gemm.cpp gemm/panels.cpp gemm/product.cpp gemm/small_product.cpp gemm/tile_write.cpp attention_backward.cpp)
