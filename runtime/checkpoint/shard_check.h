// Checks that a file is the shard that the manifest describes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/os/file_access.h"
#include "checkpoint/manifest.h"

namespace st {

struct PlacedPiece {
  const LogicalTensor* tensor;
  const TensorPiece* piece;
};

/// Checks size, header and the header's checksum, that each piece is a tensor of the file with the right dtype and shape, and that the file
/// has no other bytes. Returns the offset of each piece in the file. Throws corrupt with file and tensor. Does not read the data.
std::vector<int64_t> check_shard(const os::InputFile& file, const ShardFile& shard, std::span<const PlacedPiece> pieces);

}  // namespace st
