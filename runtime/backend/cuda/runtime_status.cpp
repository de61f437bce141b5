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
                                      cudaErrorTensorMemoryLeak,    cudaErrorECCUncorrectable,   cudaErrorContained};
  return std::ranges::find(kLasting, status) != std::end(kLasting);
}

}  // namespace

void must(cudaError_t status, std::string_view called) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(status == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::unavailable,
       text("cuda: ", called, " returned ", static_cast<int>(status), " (", cudaGetErrorName(status), ": ", cudaGetErrorString(status), ")",
            is_lasting(status) ? "; this process cannot use the device any more: save nothing from it, and start a new process, with "
                                 "SCALETRAIN_CUDA_SYNC=1 to see whose kernel it was"
                               : ""));
}

}  // namespace st::cuda
