// The same names as runtime/backend/cuda/device/access.h. Processors allow what a device does not, so alignment is checked.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <device/threads.h>

namespace st::cuda {

template <class V>
void must_be_aligned(const void* place) {
  if (reinterpret_cast<uintptr_t>(place) % alignof(V) != 0)
    throw std::runtime_error("misaligned address: a vector of " + std::to_string(alignof(V)) + " bytes");
}

template <class V>
V load_vector(const void* place) {
  must_be_aligned<V>(place);
  return *static_cast<const V*>(place);
}
template <class V>
void store_vector(void* place, const V& vector) {
  must_be_aligned<V>(place);
  *static_cast<V*>(place) = vector;
}

}  // namespace st::cuda
