// wrapper_probes: every probe; a difference fails it. wrapper_probes NAME: that probe, or a kernel with that fault, whose result may be
// right or wrong: a kernel that fails takes the process with it. wrapper_probes --list: their names.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "wrapper_probes.h"

namespace {

/// Whether device 0 is an sm_90, which alone runs machine code of sm_90a.
bool has_sm90a() {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  return major == 9 && minor == 0;
}

bool succeeds(const st::WrapperProbe& probe) {
  if (probe.needs_sm90a && !has_sm90a()) {
    std::printf("{\"probe\":\"%s\",\"skipped\":\"needs sm_90a\"}\n", probe.name);
    return true;
  }
  return probe.print(probe) == 0 || probe.is_fault;
}

}  // namespace

int main(int count, char** arguments) {
  const auto all = st::wrapper_probes();
  std::vector<st::WrapperProbe> probes(all.begin(), all.end());
  const std::string_view asked = count > 1 ? arguments[1] : "";
  if (asked == "--list") {
    for (const st::WrapperProbe& probe : probes) std::printf("%s %s\n", probe.is_fault ? "fault" : "probe", probe.name);
    return 0;
  }
  std::erase_if(probes, [&](const st::WrapperProbe& probe) { return asked.empty() ? probe.is_fault : probe.name != asked; });
  if (probes.empty()) return 2;
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0) {
    std::printf("{\"skipped\":\"%s\"}\n", cudaGetErrorName(status));
    return 0;
  }
  try {
    int64_t failed = 0;
    for (const st::WrapperProbe& probe : probes) failed += succeeds(probe) ? 0 : 1;
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& why) {
    std::string words = why.what();
    std::ranges::replace(words, '"', '\'');
    std::printf("{\"error\":\"%s\"}\n", words.c_str());
    return 1;
  }
}
