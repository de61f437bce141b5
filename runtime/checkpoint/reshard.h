// A checkpoint cut anew, without a trainer: for another number of ranks, or whole again for other tools.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"

namespace st {

constexpr int32_t kMaxShards = 65536;
/// Tensors are cut at multiples of so many elements: where the sums of a sharded optimizer are cut, so that a rank's shard is one read.
constexpr int64_t kShardGrain = 1024;

/// Elements that shard `shard` of `shards` has of a tensor: as equal as the grain allows; none of a small one, perhaps.
struct ShardRange {
  int64_t begin = 0, end = 0;
};
ShardRange shard_range(int64_t elements, int32_t shard, int32_t shards);

/// Writes the checkpoint again into `folder`, which must not be there or be empty: `shards` files of each kind with a part of each tensor,
/// or, with 0, tensors whole, in files as `options` say. Name, step, state and digest stay. All bytes are checked on the way; streams in
/// windows of some MB. Throws as read() and write_checkpoint(), cancelled as the reader is; then the folder is gone.
void reshard(const CheckpointReader& reader, const std::string& folder, int32_t shards, const WriteOptions& options);

}  // namespace st
