#include "parts/context.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "backend/device_registry.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "comm/rank_environment.h"
#include "gemm/gemm_library.h"

namespace st {
namespace {

/// Ranks that a launcher has put on this machine. What makes no sense there is told to whoever asks for its rank.
int local_ranks() {
  try {
    if (const auto found = rank_environment([](const char* name) { return static_cast<const char*>(std::getenv(name)); }))
      return std::max(1, found->local_size);
  } catch (const Error&) {
    return 1;
  }
  return 1;
}

/// SCALETRAIN_THREADS, as OMP_NUM_THREADS is for OpenMP; unset or empty: this process's cores by the ranks here.
int default_threads(int local_ranks) {
  constexpr int kMost = 4096;
  const char* value = std::getenv("SCALETRAIN_THREADS");
  const std::string_view asked = value == nullptr ? "" : value;
  if (asked.empty()) return std::max(1, os::available_cores() / local_ranks);
  int threads = 0;
  const auto [end, error] = std::from_chars(asked.begin(), asked.end(), threads);
  check(error == std::errc() && end == asked.end() && threads >= 1 && threads <= kMost, "context: SCALETRAIN_THREADS is \"", asked,
        "\", must be 1 to ", kMost, "; unset it to use this process's cores");
  return threads;
}

}  // namespace

Context::Context(ContextOptions options)
    : options_(std::move(options)),
      memory_(options_.memory ? options_.memory : std::make_shared<MemorySource>()),
      backend_(options_.make_backend ? options_.make_backend(memory_) : open_device(options_.device, memory_)),
      host_order_(std::make_unique<HostOrder>(*backend_)),
      local_ranks_(local_ranks()),
      threads_(options_.threads > 0 ? options_.threads : default_threads(local_ranks_)),
      tuning_cache_(options_.tuning_cache ? *options_.tuning_cache : default_tuning_cache(), options_.log) {
  check(options_.threads >= 0, "context: threads must be at least 0, got ", options_.threads, "; 0 uses this process's cores");
  check(options_.memory_limit >= 0, "context: memory_limit must be at least 0 bytes, got ", options_.memory_limit, "; 0 is no limit");
}

Backend& Context::host_backend() const {
  if (backend_->is_host_memory()) return *backend_;
  const std::lock_guard lock(mutex_);
  if (!of_parts_) of_parts_ = open_device("cpu", memory_);
  return *of_parts_;
}

int64_t Context::available_memory(int sharers) const { return available_in(*backend_, sharers); }

int64_t Context::available_in(const Backend& backend, int sharers) const {
  int64_t there = backend.free_bytes();
  // A device's bytes, which the account of host_backend() has too, are not in the machine's memory.
  const int64_t own = &backend == backend_.get() ? backend.allocated_bytes() : 0;
  if (backend.is_host_memory()) {
    // Arenas count from their first touch on; until then the system does not know that they are promised.
    const int64_t promised = std::max<int64_t>(0, own - os::resident_memory());
    there = std::max<int64_t>(0, there - promised);
  }
  there /= sharers;
  // The others may look at the same moment, or have taken theirs: what is there now is no measure of a part.
  if (local_ranks_ > 1 && backend.is_host_memory()) there = std::min(there, std::max<int64_t>(0, os::total_memory() / local_ranks_ - own));
  if (options_.memory_limit == 0) return there;
  return std::max<int64_t>(0, std::min(there, options_.memory_limit - backend.allocated_bytes()));
}

int64_t Context::spare_memory(int sharers) const { return spare_in(*backend_, sharers); }

int64_t Context::spare_in(const Backend& backend, int sharers) const {
  if (!memory_->is_hosts()) return available_in(backend, sharers);
  // The machine's free memory says nothing about the host's allocator, which may hold its memory already.
  if (options_.memory_limit == 0) return kUnlimited;
  return std::max<int64_t>(0, options_.memory_limit - backend.allocated_bytes());
}

void Context::require_memory(const std::string& what, int64_t bytes, int64_t part, const std::function<std::string(int64_t there)>& more,
                             std::string_view way_out) const {
  require_in(*backend_, what, bytes, part, more, way_out);
}

void Context::require_memory_of_parts(const std::string& what, int64_t bytes) const {
  require_in(host_backend(), what, bytes, kUnlimited, {});
}

void Context::require_in(const Backend& backend, const std::string& what, int64_t bytes, int64_t part,
                         const std::function<std::string(int64_t there)>& more, std::string_view way_out) const {
  const int64_t spare = spare_in(backend, 1), there = std::min(spare, part);
  if (bytes <= there) return;
  fail(Code::out_of_memory,
       text(what, " needs ", text_of_bytes(bytes), " (", bytes, " bytes), ", text_of_bytes(there),
            part < spare ? " is available to each rank here" : " is available",
            backend.is_host_memory() ? ""
                                     : text(" on device ", options_.device.starts_with(backend.name()) ? options_.device : backend.name()),
            "; ", way_out, options_.memory_limit > 0 ? ", or raise memory_limit" : "", more ? more(there) : ""));
}

void Context::require_host_memory(const std::string& what, int64_t bytes, int64_t planned) const {
  if (bytes == 0) return;
  int64_t there = backend_->host_free_bytes();
  if (local_ranks_ > 1) there = std::min(there, os::total_memory() / local_ranks_);  // the others may look at the same moment
  require(planned <= there, Code::out_of_memory, what, " offloads ", text_of_bytes(bytes), " (", bytes, " bytes) to the host's memory, ",
          planned > bytes ? text("with the ranks planned after this one ", text_of_bytes(planned), " (", planned, " bytes), ") : "",
          "where ", text_of_bytes(there), " (", there,
          " bytes) are available; use zero 3 on more ranks, an optimizer with less state (adamw-8bit), offload less (optimizer), or set "
          "offload "
          "to none");
}

GemmTuner Context::tuner() {
  return GemmTuner(
      {backend_->gemm(), backend_->kernel_class(), tuning_cache_, memory_, [this] { return available_memory(); }, options_.log});
}

std::vector<const GemmLibrary*> Context::gemm_libraries() {
  std::vector<const GemmLibrary*> libraries;
  if (backend_->name() != "cpu") return libraries;
  const GemmLibraries& all = st::gemm_libraries();
  for (const auto& library : all.found) libraries.push_back(library.get());
  if (libraries_told_.exchange(true)) return libraries;
  for (const auto& library : all.found) options_.log.info("gemm_library", library->identity(), " (", library->file(), ") is a candidate");
  for (const std::string& why : all.absent) options_.log.info("gemm_library", "not a candidate: ", why);
  return libraries;
}

void Context::on_trim(std::weak_ptr<Trimmable> cache) {
  const std::lock_guard lock(mutex_);
  std::erase_if(caches_, [](const auto& old) { return old.expired(); });
  caches_.push_back(std::move(cache));
}

void Context::trim() {
  std::vector<std::shared_ptr<Trimmable>> living;
  {
    const std::lock_guard lock(mutex_);
    living.reserve(caches_.size());
    for (const auto& cache : caches_)
      if (auto alive = cache.lock()) living.push_back(std::move(alive));
  }
  for (const auto& cache : living) cache->trim();  // without the lock: buffers go back through the host's free
}

}  // namespace st
