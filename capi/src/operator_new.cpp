// `operator new` for the library's own code. The version script keeps it internal, so the host's program and the C++ runtime keep theirs.
// Memory never crosses between the two: libscaletrain.so takes no string, stream or path from the C++ runtime (checked by capi_symbols).
#include <new>

#include "base/heap.h"

namespace {

void* made(size_t bytes, size_t align) {
  void* block = st::Heap::take(bytes, align);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void* made_or_null(size_t bytes, size_t align) noexcept {
  try {
    return st::Heap::take(bytes, align);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

constexpr size_t kAlign = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
constexpr size_t bytes_of(std::align_val_t align) { return static_cast<size_t>(align); }

}  // namespace

void* operator new(size_t bytes) { return made(bytes, kAlign); }
void* operator new[](size_t bytes) { return made(bytes, kAlign); }
void* operator new(size_t bytes, std::align_val_t align) { return made(bytes, bytes_of(align)); }
void* operator new[](size_t bytes, std::align_val_t align) { return made(bytes, bytes_of(align)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return made_or_null(bytes, kAlign); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return made_or_null(bytes, kAlign); }
void operator delete(void* block) noexcept { st::Heap::give_back(block); }
void operator delete[](void* block) noexcept { st::Heap::give_back(block); }
void operator delete(void* block, size_t) noexcept { st::Heap::give_back(block); }
void operator delete[](void* block, size_t) noexcept { st::Heap::give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { st::Heap::give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { st::Heap::give_back(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { st::Heap::give_back(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { st::Heap::give_back(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { st::Heap::give_back(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { st::Heap::give_back(block); }
