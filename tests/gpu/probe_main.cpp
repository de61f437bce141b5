// wrapper_probes: every probe; a difference fails it. wrapper_probes FAULT: a kernel with this fault, whose result may be right or wrong.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "wrapper_probes.h"

int main(int count, char** arguments) {
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0) {
    std::printf("{\"skipped\":\"%s\"}\n", cudaGetErrorName(status));
    return 0;
  }
  try {
    if (count > 1) return st::print_planted_fault(arguments[1]) ? 0 : 2;
    return st::print_wrapper_probes() == 0 ? 0 : 1;
  } catch (const std::exception& why) {
    std::string words = why.what();
    std::ranges::replace(words, '"', '\'');
    std::printf("{\"error\":\"%s\"}\n", words.c_str());
    return 1;
  }
}
