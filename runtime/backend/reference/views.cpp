// Ops that compute nothing: the executor reuses their operand's memory.
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_load{};
constinit const Kernel kernel_reshape{};
constinit const Kernel kernel_reduce_scatter{};
constinit const Kernel kernel_all_gather{};
constinit const Kernel kernel_rank_sums{};
constinit const Kernel kernel_gather_squares{};
constinit const Kernel kernel_send{};
constinit const Kernel kernel_tensor_gather{};
constinit const Kernel kernel_tensor_scatter{};
constinit const Kernel kernel_tensor_sum{};
constinit const Kernel kernel_tensor_share{};
constinit const Kernel kernel_receive{};
constinit const Kernel kernel_await{};

}  // namespace st::reference
