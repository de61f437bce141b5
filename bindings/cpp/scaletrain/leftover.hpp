// Handles that nobody owns any more, and that could not be destroyed yet.
#pragma once

#include <scaletrain/error.h>

#include <atomic>
#include <memory>
#include <new>

namespace scaletrain::detail {

/// A handle whose owner went while a call was inside: another object's, such as a trainer's of its model. It ends when the next owner goes,
/// or when live handles are counted.
struct Leftover {
  void* handle;
  st_status (*destroy)(void*);
  std::shared_ptr<void> host;  // whose functions the call that is inside may want
  Leftover* next = nullptr;

  /// Without memory for it, the handle stays for ever.
  static void keep(void* handle, st_status (*destroy)(void*), const std::shared_ptr<void>& host) noexcept {
    if (auto* one = new (std::nothrow) Leftover{handle, destroy, host}) push(one);
  }

  /// Destroys those that no call is inside of any more.
  static void end() noexcept {
    if (first.load() == nullptr) return;
    for (Leftover *one = first.exchange(nullptr), *next = nullptr; one != nullptr; one = next) {
      next = one->next;
      if (one->destroy(one->handle) == ST_BUSY)
        push(one);
      else
        delete one;
    }
  }

 private:
  static void push(Leftover* one) noexcept {
    one->next = first.load();
    while (!first.compare_exchange_weak(one->next, one)) {
    }
  }

  static inline std::atomic<Leftover*> first{nullptr};
};

}  // namespace scaletrain::detail
