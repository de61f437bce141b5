// One iteration's pause in a loop that waits for another core.
#pragma once

#if !defined(__x86_64__)
#include <thread>
#endif

namespace st {

inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace st
