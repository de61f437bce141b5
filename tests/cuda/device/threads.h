// The same names as runtime/backend/cuda/device/threads.h, for kernels that are compiled as C++ and run by grid_engine.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "grid_engine.h"

#define KERNEL(...) void
#define DEVICE inline
#define UNROLL
#define ROLLED
/// Poisoned when the block begins; each place in a kernel has an array of its own.
#define SHARED(type, name, count)     \
  static const char name##_place = 0; \
  type(&name)[count] = *static_cast<type(*)[count]>(st::simulated::shared_array(&name##_place, sizeof(type[count]), alignof(type)))

namespace st::cuda {

template <class T>
T* launch_shared() {
  return static_cast<T*>(simulated::launch_shared());
}

constexpr int kLanes = simulated::kLanes;

inline int thread_index() { return simulated::here->thread; }
inline int block_index() { return simulated::here->block; }
inline int block_threads() { return simulated::here->threads; }
inline int grid_blocks() { return simulated::here->blocks; }

inline void sync_block(int line = __builtin_LINE()) { simulated::sync_block(line); }

template <class T>
T shuffle_xor(T value, int lanes, int line = __builtin_LINE()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= simulated::kExchanged);
  T other;
  simulated::exchange(&value, &other, sizeof(T), (simulated::here->thread % kLanes) ^ lanes, line);
  return other;
}

inline unsigned atomic_add(unsigned* place, unsigned value) {
  simulated::before_atomic(place);
  const unsigned before = __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
  simulated::after_atomic(place);
  return before;
}

inline uint64_t atomic_min(uint64_t* place, uint64_t value) {
  simulated::before_atomic(place);
  uint64_t there = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (value < there && !__atomic_compare_exchange_n(place, &there, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
  simulated::after_atomic(place);
  return there;
}

inline void atomic_set(uint64_t* place, uint64_t value) {
  simulated::before_atomic(place);
  __atomic_store_n(place, value, __ATOMIC_RELAXED);
  simulated::after_atomic(place);
}

inline void fence_device() { simulated::fence(); }

}  // namespace st::cuda
