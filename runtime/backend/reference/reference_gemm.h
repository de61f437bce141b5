// The reference backend's matrix product.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::reference {

const GemmKernels& gemm_kernels();

}  // namespace st::reference
