// The host's own allocator, which a context may be given.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "base/error.h"

namespace st {

/// The host's alloc refused. A bad_alloc, as everything that calls `new` expects, and its text needs no memory.
class HostMemoryError final : public std::bad_alloc {
 public:
  HostMemoryError(Code code, const char* format, size_t first, size_t second) noexcept;
  const char* what() const noexcept override { return text_.data(); }
  Code code() const noexcept { return code_; }

 private:
  Code code_;
  std::array<char, 192> text_{};
};

/// The host's own allocator: both functions or neither. Called from any thread.
struct HostAllocator {
  void* (*alloc)(void* user, size_t bytes, size_t align) = nullptr;
  void (*free)(void* user, void* memory) = nullptr;
  void* user = nullptr;

  /// Aligned as asked and not cleared. Throws HostMemoryError: out_of_memory for a NULL, callback for an address that is not aligned.
  void* take(size_t bytes, size_t align) const;
  void give_back(void* memory) const noexcept;
};

}  // namespace st
