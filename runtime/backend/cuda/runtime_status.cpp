#include "backend/cuda/runtime_status.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace st::cuda {
namespace {

/// Errors of kernels and of the device, which every later call of the process returns again.
bool is_lasting(cudaError_t status) {
  constexpr cudaError_t kLasting[] = {cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,      cudaErrorAssert,
                                      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
                                      cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorLaunchFailure,
                                      cudaErrorTensorMemoryLeak,    cudaErrorECCUncorrectable,   cudaErrorContained,
                                      cudaErrorMpsClientTerminated, cudaErrorExternalDevice};
  return std::ranges::find(kLasting, status) != std::end(kLasting);
}

std::string_view way_out(cudaError_t status) {
  if (is_lasting(status))
    return "; this process cannot use the device any more: save nothing from it, and start a new process, with SCALETRAIN_CUDA_SYNC=1 to "
           "see whose kernel it was";
  if (status == cudaErrorDevicesUnavailable)
    return "; another process has it (compute mode Exclusive_Process): end that process, use another device, or let an administrator allow "
           "several with nvidia-smi -c DEFAULT";
  return "";
}

}  // namespace

void must(cudaError_t status, std::string_view called) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(status == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::unavailable,
       text("cuda: ", called, " returned ", static_cast<int>(status), " (", cudaGetErrorName(status), ": ", cudaGetErrorString(status), ")",
            way_out(status)));
}

}  // namespace st::cuda
