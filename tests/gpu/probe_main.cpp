// wrapper_probes: every probe; a difference fails it. wrapper_probes FAULT: a kernel with this fault, whose result may be right or wrong.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <exception>

#include "wrapper_probes.h"

int main(int count, char** words) {
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0) {
    std::printf("{\"skipped\":\"%s\"}\n", cudaGetErrorName(status));
    return 0;
  }
  try {
    if (count > 1) return st::print_planted_fault(words[1]) ? 0 : 2;
    return st::print_wrapper_probes() == 0 ? 0 : 1;
  } catch (const std::exception& why) {
    std::printf("{\"error\":\"%s\"}\n", why.what());
    return 1;
  }
}
