// Handles without an owner that could not be destroyed yet.
#pragma once

#include <scaletrain/error.h>

#include <atomic>
#include <memory>
#include <new>

namespace scaletrain::detail {

/// A handle whose owner was destroyed while a call of another object, such as a trainer of the model, was using it. It is destroyed when
/// another owner goes, or when live handles are counted.
struct Leftover {
  void* handle;
  st_status (*destroy)(void*);
  std::shared_ptr<void> host;  // its functions may be needed by the running call
  Leftover* next = nullptr;

  /// Without memory for the record the handle leaks.
  static void keep(void* handle, st_status (*destroy)(void*), const std::shared_ptr<void>& host) noexcept {
    if (auto* one = new (std::nothrow) Leftover{handle, destroy, host}) push(one);
  }

  /// Destroys those that no call is using any more.
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
