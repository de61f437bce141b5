// Memory for an operand in which accesses beyond it are detected: next to an inaccessible page, or on the heap, where a sanitizer checks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "product_draw.h"

namespace st::fuzz {

class GuardedMemory {
 public:
  /// `bytes` of 0xFF, a NaN in every type. They end at an inaccessible page, start after one, or are on the heap. There vectors are not
  /// aligned: the address is a multiple of `unit` bytes, or of 64 if that is the unit.
  GuardedMemory(Draw& draw, int64_t bytes, int64_t unit);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  int64_t size() const { return bytes_; }
  bool is_untouched() const;  // all bytes are 0xFF

 private:
  std::byte* whole_ = nullptr;  // heap memory if mapped_ is 0
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace st::fuzz
