// Uploads of the host's bytes through pinned memory.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>

#include "backend/backend.h"

namespace st {

/// Copies in the order of a stream's work, while the host goes on: the bytes are taken within the call.
class UploadRing {
 public:
  /// Two pinned halves of at least `bytes` each: one is filled while the device may still read the other. Borrows both arguments.
  UploadRing(Backend& backend, Stream& stream, int64_t bytes);
  /// Waits for the device where it has not read what was last in a half.
  void write(Address to, const void* from, int64_t bytes);
  int64_t bytes() const { return std::ssize(halves_) * size_; }

 private:
  struct Half {
    std::unique_ptr<PinnedMemory> memory;
    std::unique_ptr<Event> is_read;
    int64_t used = 0;
  };

  void turn();

  Stream& stream_;
  const int64_t size_;  // of a half
  std::array<Half, 2> halves_;
  size_t current_ = 0;
};

}  // namespace st
