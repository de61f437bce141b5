// libscaletrain_cuda_simulated.so, for tests alone: the plug-in's backend and kernels on a device that is not there.
// SCALETRAIN_SIMULATED_ORDER is when its streams run: eager (the default), late or random. SCALETRAIN_SIMULATED_NCCL: the file of
// fake_nccl.
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "backend/backend_plugin.h"
#include "backend/cuda/cuda_backend.h"
#include "simulated_runtime.h"
#include "simulated_stream.h"

namespace st::simulated {
namespace {

constexpr int kDevices = 4;

Order order() {
  const char* const given = std::getenv("SCALETRAIN_SIMULATED_ORDER");
  const std::string_view name = given == nullptr ? "eager" : given;
  require(name == "eager" || name == "late" || name == "random", Code::invalid_argument, "SCALETRAIN_SIMULATED_ORDER is ", name,
          "; use eager, late or random");
  return name == "late" ? Order::late : name == "random" ? Order::random : Order::eager;
}

int count(std::string& /*why_none*/) {
  static std::once_flag has_started;
  std::call_once(has_started, [] { start_runtime({.order = order(), .devices = kDevices, .memory = int64_t{1} << 34}); });
  return kDevices;
}

constexpr const char* kName = "cuda-simulated";

/// Never NVIDIA's, which would take these streams for its own.
std::shared_ptr<const nccl::Library> open_simulated_nccl() {
  const char* const file = std::getenv("SCALETRAIN_SIMULATED_NCCL");
  require(file != nullptr && *file != '\0', Code::unavailable, "NCCL is missing: SCALETRAIN_SIMULATED_NCCL is not set");
  const os::LoadedLibrary library(file);
  using AskDevice = void (*)(int (*current)());
  if (const auto ask = library.find<AskDevice>("ncclFakeAsksDevice")) ask([] { return current_device; });
  return nccl::functions_of(library);
}

std::string version_of_nccl() { return open_simulated_nccl()->version_text(); }

std::unique_ptr<Backend> open(int index, std::shared_ptr<MemorySource> memory) {
  return cuda::make_cuda_backend(kName, "simulated", index, std::move(memory), open_simulated_nccl);
}

constexpr DeviceMaker kRows[] = {{kName, count, open, &cuda_needs, "nccl", version_of_nccl}};

}  // namespace
}  // namespace st::simulated

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, simulated::kRows, std::size(simulated::kRows)};
  return &plugin;
}
