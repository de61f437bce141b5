// Bytes for an operand that lie so that a touch beyond them is seen: beside a page nobody may touch, or on the heap, where a sanitizer
// looks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "product_draw.h"

namespace st::fuzz {

class GuardedMemory {
 public:
  /// `bytes` full of 0xFF, a NaN in every type. They end where a page without access begins, begin where one ends, or are the heap's, where
  /// vectors are not aligned: `unit` bytes are, or 64 where that is the unit.
  GuardedMemory(Draw& draw, int64_t bytes, int64_t unit);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  int64_t size() const { return bytes_; }
  bool is_untouched() const;  // all is 0xFF

 private:
  std::byte* whole_ = nullptr;  // of the heap where mapped_ is 0
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace st::fuzz
