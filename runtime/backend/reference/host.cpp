#include "backend/host_call.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_host{call_host_forward};
constinit const Kernel kernel_host_backward{call_host_backward};

}  // namespace st::reference
