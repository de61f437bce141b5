// The names and words of errors, those of CUDA 13's runtime.
#include <cuda_runtime_api.h>

namespace {

struct Words {
  cudaError_t status;
  const char *name, *words;
};
constexpr Words kWords[] = {
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "operation not permitted in current context state"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"}};

const Words& words_of(cudaError_t status) {
  static constexpr Words kUnknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const Words& words : kWords)
    if (words.status == status) return words;
  return kUnknown;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t status) { return words_of(status).name; }

const char* cudaGetErrorString(cudaError_t status) { return words_of(status).words; }

}  // extern "C"
