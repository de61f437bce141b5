// Where computing happens and what the host lends for it: one backend, its memory, a number of threads, a logger. Models and trainers keep
// it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "base/memory_source.h"
#include "base/workers.h"
#include "ir/host_op.h"
#include "parts/gemm_tuner.h"

namespace st {

struct ContextOptions {
  std::string device = "cpu";  // cpu, reference
  int threads = 0;             // 0: SCALETRAIN_THREADS, else this process's cores (affinity, cgroup quota) by a launcher's ranks here
  int64_t memory_limit = 0;    // bytes of all buffers together; 0: what the machine has
  Logger log;
  HostParallel parallel;
  std::shared_ptr<MemorySource> memory;                    // null: the system's
  std::optional<std::string> tuning_cache = std::nullopt;  // its file; "": none; nothing: default_tuning_cache()
  bool late_parameters = false;                            // models get them when something asks for them (model.h)
};

/// What keeps buffers only for speed: plans of evaluations, idle executors of predictors.
class Trimmable {
 public:
  virtual ~Trimmable() = default;
  /// Gives back what no call is using. From any thread at any time, also during a call that uses the rest.
  virtual void trim() = 0;
};

class Context {
 public:
  /// Throws invalid_argument for an unknown device, unavailable for one that is not here.
  explicit Context(ContextOptions options);

  Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }
  const ContextOptions& options() const { return options_; }
  std::unique_ptr<Workers> make_workers(int threads) const { return std::make_unique<Workers>(threads, options_.parallel); }

  /// Ops of the host's own, which graphs of this context may use.
  HostOps& host_ops() { return host_ops_; }
  const HostOps& host_ops() const { return host_ops_; }

  /// What can still be had: the machine's, lowered by a cgroup's limit and memory_limit. Of the ranks that a launcher has put on this
  /// machine each can have its part of all; `sharers`: who look at the same time, and divide what is there.
  int64_t available_memory(int sharers = 1) const;
  /// Where the buffers of everything in this context come from.
  const std::shared_ptr<MemorySource>& memory() const { return memory_; }
  /// What require_memory() lets pass; kUnlimited: the host's allocator knows.
  int64_t spare_memory(int sharers = 1) const;
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  /// Throws out_of_memory with the need, what is there, or this rank's part of it, and a way out, before anything is touched.
  void require_memory(const std::string& what, int64_t bytes, int64_t part = kUnlimited) const;

  /// Measures products, where a plan or a recipe asks for it; what it finds is shared by all that is made here.
  GemmTuner tuner();
  /// Libraries of others that may compete there, looked for in this process when first asked for; the log says which there are, and why
  /// others are not. None beside a backend that is not to be fast.
  std::vector<const GemmLibrary*> gemm_libraries();

  /// Grows with every cancel(): a call that began at another number was cancelled.
  const std::atomic<uint64_t>& cancels() const { return cancels_; }
  /// From any thread or signal handler.
  void cancel() { cancels_.fetch_add(1); }

  /// From now on trim() asks `cache` too, for as long as it lives.
  void on_trim(std::weak_ptr<Trimmable> cache);
  void trim();

 private:
  ContextOptions options_;
  std::shared_ptr<MemorySource> memory_;
  std::atomic<uint64_t> cancels_{0};
  std::mutex mutex_;
  std::vector<std::weak_ptr<Trimmable>> caches_;
  std::unique_ptr<Backend> backend_;
  const int local_ranks_;
  int threads_;
  HostOps host_ops_;
  TuningCache tuning_cache_;
  std::atomic<bool> libraries_told_ = false;
};

}  // namespace st
