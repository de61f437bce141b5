// Where computing happens and what the host lends for it: one backend, a number of threads, a logger. Models and trainers keep it alive.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/log.h"
#include "base/workers.h"

namespace st {

struct ContextOptions {
  std::string device = "cpu";  // cpu, reference
  int threads = 0;             // 0: this process's cores (affinity and cgroup quota)
  int64_t memory_limit = 0;    // bytes of all buffers together; 0: what the machine has
  Logger log;
  HostParallel parallel;
};

class Context {
 public:
  /// Throws invalid_argument for an unknown device, unavailable for one that is not here.
  explicit Context(ContextOptions options);

  Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }
  const ContextOptions& options() const { return options_; }
  std::unique_ptr<Workers> make_workers(int threads) const { return std::make_unique<Workers>(threads, options_.parallel); }

  /// What can still be had: the machine's, lowered by a cgroup's limit and memory_limit.
  int64_t available_memory() const;
  /// Throws out_of_memory with the need, what is there and a way out, before anything is touched.
  void require_memory(const std::string& what, int64_t bytes) const;

 private:
  ContextOptions options_;
  std::unique_ptr<Backend> backend_;
  int threads_;
};

}  // namespace st
