// Identities of ThreadSanitizer's for what runs on one thread in a simulation and at the same time on a device.
#pragma once

// Defined by ThreadSanitizer's runtime alone.
extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* place);
__attribute__((weak)) void __tsan_release(void* place);
}

namespace st {

/// What the host did before release(place) happens before what another identity does after acquire(place). Nothing without
/// ThreadSanitizer.
inline void acquire(void* place) {
  if (__tsan_acquire != nullptr) __tsan_acquire(place);
}
inline void release(void* place) {
  if (__tsan_release != nullptr) __tsan_release(place);
}

/// Of a stream. Accesses of what become() calls are its own, ordered with others by acquire() and release() only.
class RaceIdentity {
 public:
  RaceIdentity() : fiber_(__tsan_create_fiber == nullptr ? nullptr : __tsan_create_fiber(0)) {}
  ~RaceIdentity() {
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
  }
  RaceIdentity(const RaceIdentity&) = delete;
  RaceIdentity& operator=(const RaceIdentity&) = delete;

  /// run(of), which does not throw. Not a closure: reading one that the host has just made would be a race.
  __attribute__((no_sanitize("thread"))) void become(void (*run)(void* of), void* of) {
    if (fiber_ == nullptr) return run(of);
    constexpr unsigned kNoOrder = 1;  // the switch itself orders nothing
    void* const before = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, kNoOrder);
    run(of);
    __tsan_switch_to_fiber(before, kNoOrder);
  }

 private:
  void* fiber_;
};

}  // namespace st
