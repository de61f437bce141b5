// A block of a checkpoint's tensor: the bytes that one checksum covers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/os/file_access.h"
#include "checkpoint/manifest.h"

namespace st {

struct BlockPlace {
  const LogicalTensor* tensor;
  const TensorPiece* piece;
  int64_t offset;  // of the piece in its file
  int64_t block;

  // In bytes of the piece:
  int64_t begin() const { return block * kChecksumBlock; }
  int64_t end() const { return std::min(begin() + kChecksumBlock, (piece->end - piece->begin) * bytes_of(tensor->dtype)); }
  int64_t bytes() const { return end() - begin(); }
};

/// Reads the block into `out`, which has its size, and verifies the checksum while the bytes are in the cache. Throws corrupt with file,
/// tensor, block and offset, or the disk's error.
void read_block(const os::InputFile& file, const BlockPlace& place, std::span<std::byte> out);

}  // namespace st
