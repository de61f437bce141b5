// Identities of ThreadSanitizer's for what runs on one thread in a simulation and at the same time on a device.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

// Defined by ThreadSanitizer's runtime alone.
extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* place);
__attribute__((weak)) void __tsan_release(void* place);
__attribute__((weak)) void AnnotateBenignRaceSized(const char* file, int line, const volatile void* place, size_t bytes, const char* why);
}

/// A function whose own accesses ThreadSanitizer does not see.
#define ST_UNWATCHED __attribute__((no_sanitize("thread"), noinline))

namespace st {

/// What the host did before release(place) happens before what another identity does after acquire(place). Nothing without
/// ThreadSanitizer.
inline void acquire(void* place) {
  if (__tsan_acquire != nullptr) __tsan_acquire(place);
}
inline void release(void* place) {
  if (__tsan_release != nullptr) __tsan_release(place);
}

/// Identities of streams that have ended: ThreadSanitizer may give the address of one to the next.
inline std::atomic<uint64_t> identities_ended{0};

/// Of a stream. Accesses of what become() calls are its own, ordered with others by acquire() and release() only. It has a stack of its
/// own, since the host uses its stack again. Races on thread-local variables are not reported: it shares them with the host's thread that
/// runs it, and they never run at the same time.
class RaceIdentity {
 public:
  RaceIdentity() {
    if (__tsan_create_fiber == nullptr) return;
    fiber_ = __tsan_create_fiber(0);
    stack_ = std::make_unique<std::byte[]>(kStack);
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_.get();
    inside_.uc_stack.ss_size = kStack;
    // Not a thread-local of become()'s: a library in another's place may have become() of its own, with variables of its own.
    const auto own = reinterpret_cast<uintptr_t>(this);
    makecontext(&inside_, reinterpret_cast<void (*)()>(begin), 2, static_cast<unsigned>(own >> 32), static_cast<unsigned>(own));
  }
  ~RaceIdentity() {
    if (fiber_ == nullptr) return;
    __tsan_destroy_fiber(fiber_);
    identities_ended.fetch_add(1, std::memory_order_relaxed);  // which orders nothing
  }
  RaceIdentity(const RaceIdentity&) = delete;
  RaceIdentity& operator=(const RaceIdentity&) = delete;

  /// run(of), which does not throw. Not a closure: reading one that the host has just made would be a race.
  ST_UNWATCHED void become(void (*run)(void* of), void* of);

 private:
  static constexpr size_t kStack = size_t{1} << 20;
  static constexpr unsigned kNoOrder = 1;  // a switch itself orders nothing

  /// The halves of the identity's address.
  ST_UNWATCHED static void begin(unsigned high, unsigned low);
  static void share_thread_locals();

  void* fiber_ = nullptr;  // null: no ThreadSanitizer
  void* host_ = nullptr;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{}, outside_{};
  void (*run_)(void* of) = nullptr;
  void* of_ = nullptr;
};

}  // namespace st
