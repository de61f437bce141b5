// Memory in vectors. An address that is not aligned to its vector stops a kernel.
#pragma once

#include <device/threads.h>

namespace st::cuda {

/// V: trivial, of at most 16 bytes an access; larger ones take several.
template <class V>
DEVICE V load_vector(const void* place) {
  return *static_cast<const V*>(place);
}
template <class V>
DEVICE void store_vector(void* place, const V& vector) {
  *static_cast<V*>(place) = vector;
}

}  // namespace st::cuda
