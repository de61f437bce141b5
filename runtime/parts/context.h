// The context of all computing: one backend, its memory, a number of threads, a logger, and what the host provides for them. Models and
// trainers keep it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/host_order.h"
#include "base/log.h"
#include "base/memory_source.h"
#include "base/workers.h"
#include "ir/host_op.h"
#include "parts/gemm_tuner.h"

namespace st {

/// A backend of a context's own, with its memory from `memory`.
using BackendMaker = std::function<std::unique_ptr<Backend>(const std::shared_ptr<MemorySource>& memory)>;

struct ContextOptions {
  std::string device = "cpu";  // cpu, reference, or a plug-in's: cuda, cuda:1 (backend/device_registry.h)
  int threads = 0;           // 0: SCALETRAIN_THREADS, else this process's cores (affinity, cgroup quota) / a launcher's ranks on this host
  int64_t memory_limit = 0;  // bytes of all buffers together; 0: the machine's memory
  Logger log;
  HostParallel parallel;
  std::shared_ptr<MemorySource> memory;                    // null: the system's
  std::optional<std::string> tuning_cache = std::nullopt;  // file; "": no cache; unset: default_tuning_cache()
  bool late_parameters = false;                            // models allocate parameters on first use (model.h)
  BackendMaker make_backend = {};                          // instead of that of `device`
};

/// An object that keeps buffers only for speed: plans of evaluations, idle executors of predictors.
class Trimmable {
 public:
  virtual ~Trimmable() = default;
  /// Frees what no call is using. Any thread, any time, also during a call that uses the rest.
  virtual void trim() = 0;
};

class Context {
 public:
  /// Throws invalid_argument for an unknown device, unavailable for one that this machine does not have or whose plug-in is missing.
  explicit Context(ContextOptions options);

  Backend& backend() const { return *backend_; }
  /// Computes parts over the host's arrays: backend(), or the cpu's on a device of its own memory. Throws out_of_memory.
  Backend& host_backend() const;
  /// Orders the host's work on its arrays on the device with ours.
  HostOrder& host_order() const { return *host_order_; }
  int threads() const { return threads_; }
  const ContextOptions& options() const { return options_; }
  std::unique_ptr<Workers> make_workers(int threads) const { return std::make_unique<Workers>(threads, options_.parallel); }

  /// Host-defined ops that graphs of this context may use.
  HostOps& host_ops() { return host_ops_; }
  const HostOps& host_ops() const { return host_ops_; }

  /// Bytes that can still be allocated: the machine's, lowered by the cgroup's limit, or those of a device of its own memory; both lowered
  /// by memory_limit. The ranks that a launcher started on this machine share its memory evenly. `sharers`: number of callers that ask at
  /// the same time and also divide it.
  int64_t available_memory(int sharers = 1) const;
  /// The source of all buffers in this context.
  const std::shared_ptr<MemorySource>& memory() const { return memory_; }
  /// The largest request that require_memory() accepts; kUnlimited with a host's allocator, which knows its own limit.
  int64_t spare_memory(int sharers = 1) const;
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  /// Throws out_of_memory, before anything is allocated, with the bytes needed, the bytes available (or this rank's part) and a way out.
  /// `more`: called to refuse only, ends the message, for instance with what the caller can change; `there`: the bytes available.
  void require_memory(const std::string& what, int64_t bytes, int64_t part = kUnlimited,
                      const std::function<std::string(int64_t there)>& more = {}, std::string_view way_out = kSmaller) const;
  /// The way out of a request that depends on all three.
  static constexpr std::string_view kSmaller = "use a smaller model, batch or context";
  /// The same for memory of host_backend().
  void require_memory_of_parts(const std::string& what, int64_t bytes) const;
  /// The same for memory of the host in place of a device's. `planned`: with that of this process's ranks which allocate theirs after this.
  void require_host_memory(const std::string& what, int64_t bytes, int64_t planned) const;

  /// Measures products for plans and recipes that ask for it; everything in this context shares the results.
  GemmTuner tuner();
  /// External libraries that the tuner compares, searched on first use; the log says which are found and why others are not. Empty for a
  /// backend that is not built for speed.
  std::vector<const GemmLibrary*> gemm_libraries();

  /// Grows with every cancel(): a call that began with another value is cancelled.
  const std::atomic<uint64_t>& cancels() const { return cancels_; }
  /// From any thread or signal handler.
  void cancel() { cancels_.fetch_add(1); }

  /// Registers `cache` for trim() as long as it lives.
  void on_trim(std::weak_ptr<Trimmable> cache);
  void trim();

 private:
  int64_t available_in(const Backend& backend, int sharers) const;
  int64_t spare_in(const Backend& backend, int sharers) const;
  void require_in(const Backend& backend, const std::string& what, int64_t bytes, int64_t part,
                  const std::function<std::string(int64_t there)>& more, std::string_view way_out = kSmaller) const;

  ContextOptions options_;
  std::shared_ptr<MemorySource> memory_;
  std::atomic<uint64_t> cancels_{0};
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<Trimmable>> caches_;
  std::unique_ptr<Backend> backend_;
  mutable std::unique_ptr<Backend> of_parts_;  // null: not needed so far
  const std::unique_ptr<HostOrder> host_order_;
  const int local_ranks_;
  int threads_;
  HostOps host_ops_;
  TuningCache tuning_cache_;
  std::atomic<bool> libraries_told_ = false;
};

}  // namespace st
