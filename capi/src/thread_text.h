// The text result of a call without a handle.
#pragma once

#include <threads.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"

namespace st::capi {

/// One text per thread. The C library's free releases it when the thread ends: an object with a destructor of ours would keep the library
/// from being unloaded while a thread that called it is alive.
class ThreadText {
 public:
  /// Valid until this thread's next keep() of this object. `call` prefixes messages.
  const char* keep(const std::string& text, const char* call) {
    require(made_, Code::unavailable, call, ": the process has no thread key left (PTHREAD_KEYS_MAX)");
    char* copy = strdup(text.c_str());
    if (copy == nullptr) throw std::bad_alloc();
    char* old = static_cast<char*>(tss_get(key_));
    if (tss_set(key_, copy) != thrd_success) {
      std::free(copy);
      throw std::bad_alloc();
    }
    std::free(old);
    return copy;
  }
  ThreadText() : made_(tss_create(&key_, std::free) == thrd_success) {}
  ~ThreadText() {
    if (!made_) return;
    std::free(tss_get(key_));
    tss_delete(key_);
  }
  ThreadText(const ThreadText&) = delete;
  ThreadText& operator=(const ThreadText&) = delete;

 private:
  tss_t key_{};
  bool made_;
};

}  // namespace st::capi
