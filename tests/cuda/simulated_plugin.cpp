// libscaletrain_cuda_simulated.so, for tests alone: the plug-in's backend and kernels on a device that is not there.
// SCALETRAIN_SIMULATED_ORDER is when its streams run: eager (the default), late or random. SCALETRAIN_SIMULATED_NCCL: the file of
// fake_nccl. With SCALETRAIN_SIMULATED_CUBLASLT=1 it looks for cuBLASLt as the plug-in does, and takes fake_cublaslt.cpp alone. With
// SCALETRAIN_SIMULATED_CUT_SUMS=1 its tensor cores cut sums as an H100 does (warp_product.h), and with SCALETRAIN_SIMULATED_NO_WAITS=1 no
// stream waits for an event, a fault that ThreadSanitizer must see.
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "backend/backend_plugin.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/library_products.h"
#include "simulated_contexts.h"
#include "simulated_driver.h"
#include "simulated_runtime.h"
#include "simulated_stream.h"
#include "warp_product.h"

namespace st::simulated {
namespace {

constexpr int kDevices = kMostDevices;

Order order() {
  const char* const given = std::getenv("SCALETRAIN_SIMULATED_ORDER");
  const std::string_view name = given == nullptr ? "eager" : given;
  require(name == "eager" || name == "late" || name == "random", Code::invalid_argument, "SCALETRAIN_SIMULATED_ORDER is ", name,
          "; use eager, late or random");
  return name == "late" ? Order::late : name == "random" ? Order::random : Order::eager;
}

bool cuts_sums() { return std::getenv("SCALETRAIN_SIMULATED_CUT_SUMS") != nullptr; }
bool forgets_waits() { return std::getenv("SCALETRAIN_SIMULATED_NO_WAITS") != nullptr; }

/// The real one would follow pointers to streams that are not its own.
cuda::CublasLt load_fake_cublaslt() {
  const cuda::CublasLt found = cuda::load_cublaslt();
  const auto open = os::LoadedLibrary::if_open("libcublasLt.so.13");
  require(open && open->find<void (*)()>("st_fake_cublaslt") != nullptr, Code::unavailable,
          "this cuBLASLt is NVIDIA's, not the simulated device's");
  return found;
}

bool has_library() { return std::getenv("SCALETRAIN_SIMULATED_CUBLASLT") != nullptr; }

std::optional<cuda::CublasLt> library(std::string& why_none) {
  return has_library() ? cuda::cublaslt_if_there(load_fake_cublaslt, why_none) : std::nullopt;
}

int count(std::string& why_none) {
  static std::once_flag has_started;
  std::call_once(has_started, [] {
    start_runtime({.order = order(), .devices = kDevices, .memory = int64_t{1} << 34, .forgets_waits = forgets_waits()});
    cut_sums(cuts_sums() ? &probe::kTensorCore16 : nullptr);
  });
  library(why_none);
  return kDevices;
}

constexpr const char* kName = "cuda-simulated";

/// Never NVIDIA's, which would take these streams for its own.
std::shared_ptr<const nccl::Library> open_simulated_nccl() {
  const char* const file = std::getenv("SCALETRAIN_SIMULATED_NCCL");
  require(file != nullptr && *file != '\0', Code::unavailable, "NCCL is missing: SCALETRAIN_SIMULATED_NCCL is not set");
  const os::LoadedLibrary library(file);
  using AskDevice = void (*)(int (*current)());
  if (const auto ask = library.find<AskDevice>("ncclFakeAsksDevice")) ask([] { return current_device(); });
  return nccl::functions_of(library);
}

std::string version_of_nccl() { return open_simulated_nccl()->version_text(); }

std::unique_ptr<Backend> open(int index, std::shared_ptr<MemorySource> memory) {
  std::string why_none;
  const cuda::ProductMeans products("simulated", library(why_none));
  const std::string kernels = cuts_sums() ? "simulated sums=cut" : "simulated";
  return cuda::make_cuda_backend(kName, has_library() ? kernels + " " + products.kernel_class() : kernels, held_context(index),
                                 std::move(memory), open_simulated_nccl, [&] { return products.choices(); });
}

constexpr DeviceMaker kRows[] = {{kName, count, open, &cuda_needs, "nccl", version_of_nccl}};

}  // namespace
}  // namespace st::simulated

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, simulated::kRows, std::size(simulated::kRows)};
  return &plugin;
}
