// Pointers into a device's memory, for kernels. Backends alone include it: on a device of its own memory a host that follows one crashes.
#pragma once

#include <cstddef>
#include <span>

#include "backend/kernel_call.h"

namespace st {

template <class T = std::byte>
T* pointer_to(Address place) {
  return reinterpret_cast<T*>(place.at);
}
inline Address address_of(const void* place) { return {reinterpret_cast<uintptr_t>(place)}; }

template <class T>
T* as(const Operand& operand) {
  return pointer_to<T>(operand.data);
}

inline std::span<std::byte> workspace_of(const Call& call) {
  return {pointer_to(call.workspace), static_cast<size_t>(call.workspace_bytes)};
}

}  // namespace st
