// Contexts of the simulated devices, whose it is on a thread, and the kernels that are loaded in them.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <set>

/// CUDA's own type, which is opaque to the toolkit.
struct CUctx_st {
  int device = 0;
  bool is_primary = false;
};

namespace st::simulated {

constexpr int kMostDevices = 8;

/// Those of a process, and what its primary contexts have loaded. Safe on several threads.
class Contexts {
 public:
  Contexts() {
    for (int device = 0; device < kMostDevices; ++device) primary_[static_cast<size_t>(device)].context = {device, true};
  }
  CUctx_st* primary(int device) { return &of(device).context; }
  void retain(int device) {
    const std::lock_guard lock(mutex_);
    of(device).is_held = true;
  }
  /// CUDA's runtime makes it, and keeps it.
  void initialise(int device) {
    const std::lock_guard lock(mutex_);
    of(device).is_runtimes = true;
  }
  /// A new process; what is held stays.
  void restart() {
    const std::lock_guard lock(mutex_);
    for (Primary& each : primary_) {
      each.is_runtimes = false;
      end_if_unused(each);
    }
  }
  bool is_initialised(int device) {
    const std::lock_guard lock(mutex_);
    return of(device).is_held || of(device).is_runtimes;
  }
  /// Loads a kernel. `is_launched`: it is counted as cold if it was not loaded.
  void load(int device, const void* kernel, bool is_launched) {
    const std::lock_guard lock(mutex_);
    if (of(device).loaded.insert(kernel).second && is_launched) ++cold_;
  }
  int64_t cold_launches() const {
    const std::lock_guard lock(mutex_);
    return cold_;
  }

 private:
  struct Primary {
    CUctx_st context;
    bool is_held = false, is_runtimes = false;
    std::set<const void*> loaded = {};
  };

  Primary& of(int device) { return primary_[static_cast<size_t>(device)]; }
  static void end_if_unused(Primary& own) {
    if (!own.is_held && !own.is_runtimes) own.loaded.clear();
  }

  mutable std::mutex mutex_;
  std::array<Primary, kMostDevices> primary_;
  int64_t cold_ = 0;
};

inline Contexts& contexts() {
  static Contexts& all = *new Contexts;
  return all;
}

/// The contexts of a thread; the last is the current one.
class ThreadContexts {
 public:
  CUctx_st* current() const { return count_ == 0 ? nullptr : at_[count_ - 1]; }
  bool push(CUctx_st* context) {
    if (count_ == kMost) return false;
    at_[count_++] = context;
    return true;
  }
  /// Null: there is none.
  CUctx_st* pop() { return count_ == 0 ? nullptr : at_[--count_]; }
  /// In the place of the current one.
  void set(CUctx_st* context) {
    pop();
    push(context);
  }
  void clear() { count_ = 0; }

 private:
  static constexpr int kMost = 16;
  CUctx_st* at_[kMost] = {};
  int count_ = 0;
};

inline constinit thread_local ThreadContexts thread_contexts;

/// As cudaSetDevice() does it.
inline void make_current(int device) {
  contexts().initialise(device);
  thread_contexts.set(contexts().primary(device));
}

/// Called by functions of the runtime that need a context: a thread that has none gets that of GPU 0.
inline void need_context() {
  if (thread_contexts.current() == nullptr) make_current(0);
}

/// As cudaGetDevice() says it.
inline int current_device() { return thread_contexts.current() == nullptr ? 0 : thread_contexts.current()->device; }

/// Whether kernels and calls of this thread get to a stream of the device's primary context.
inline bool is_in_primary(int device) { return thread_contexts.current() == contexts().primary(device); }

}  // namespace st::simulated
