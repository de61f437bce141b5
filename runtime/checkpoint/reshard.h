// Writes a checkpoint with other shards, without a trainer: for another number of ranks, or whole for other tools.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"

namespace st {

constexpr int32_t kMaxShards = 65536;
/// Tensors are split at multiples of this many elements, like the sums of a sharded optimizer, so that a rank's shard is one read.
constexpr int64_t kShardGrain = 1024;

/// The elements of a tensor in shard `shard` of `shards`: as equal as the grain allows; empty for some shards of a small tensor.
struct ShardRange {
  int64_t begin = 0, end = 0;
};
ShardRange shard_range(int64_t elements, int32_t shard, int32_t shards);

/// Writes the checkpoint to `folder`, which must be empty or not exist, as `shards` files of each kind that hold a part of each tensor; 0:
/// whole tensors, in files as `options` say. Keeps name, step, state and digest. Verifies all bytes and streams in windows of a few MB.
/// Throws as CheckpointReader::read() and write_checkpoint(), and cancelled by the reader's is_cancelled; then removes the folder.
void reshard(const CheckpointReader& reader, const std::string& folder, int32_t shards, const WriteOptions& options);

}  // namespace st
