#include "base/host_allocator.h"

#include <cstdint>
#include <cstdio>

#include "base/float_mode.h"

namespace st {

HostMemoryError::HostMemoryError(Code code, const char* format, size_t first, size_t second) noexcept : code_(code) {
  static_cast<void>(std::snprintf(text_.data(), text_.size(), format, first, second));
}

void* HostAllocator::take(size_t bytes, size_t align) const {
  void* memory = call_host(alloc, user, bytes, align);
  if (memory == nullptr)
    throw HostMemoryError(Code::out_of_memory,
                          "memory: the host's alloc returned NULL for %zu bytes aligned to %zu; raise its limit, "
                          "or use a smaller model or batch",
                          bytes, align);
  if (const auto rest = reinterpret_cast<uintptr_t>(memory) % align; rest != 0) {
    give_back(memory);
    throw HostMemoryError(Code::callback,
                          "memory: the host's alloc returned an address %zu bytes past a multiple of %zu; it must respect the "
                          "requested alignment",
                          rest, align);
  }
  return memory;
}

void HostAllocator::give_back(void* memory) const noexcept { call_host(free, user, memory); }

}  // namespace st
