// The host's own allocator, which a context may use.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "base/error.h"

namespace st {

/// The host's alloc failed. A bad_alloc, as callers of `new` expect; its text needs no memory.
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

  /// Aligned as requested, not cleared. Throws HostMemoryError: out_of_memory for a NULL, callback for a misaligned address.
  void* take(size_t bytes, size_t align) const;
  void give_back(void* memory) const noexcept;
};

}  // namespace st
