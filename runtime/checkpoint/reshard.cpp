#include "checkpoint/reshard.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/os/file_access.h"
#include "base/os/files.h"

namespace st {
namespace {

/// A manifest with the state of `from` that is not a tensor; the library version is ours.
Manifest state_of(const Manifest& from) {
  Manifest to;
  to.checkpoint = from.checkpoint;
  to.sequence = from.sequence;
  to.step = from.step;
  to.time = from.time;
  to.host = from.host;
  to.training = parse_json(from.training.dump(), "training");
  to.recipe = parse_json(from.recipe.dump(), "recipe");
  to.metadata = from.metadata;
  return to;
}

std::function<void(int64_t, std::span<std::byte>)> copy_of(const CheckpointReader& reader, const LogicalTensor& tensor, int64_t begin) {
  return [&reader, &tensor, begin](int64_t first, std::span<std::byte> out) {
    const int64_t size = bytes_of(tensor.dtype), from = begin + first / size;
    reader.read(tensor, from, from + std::ssize(out) / size, out);
  };
}

void write_whole(const CheckpointReader& reader, const std::string& folder, const WriteOptions& options) {
  std::vector<WrittenTensor> tensors;
  for (const LogicalTensor& t : reader.manifest().tensors) tensors.push_back({t.name, t.kind, t.dtype, t.shape, {}, copy_of(reader, t, 0)});
  WriteProgress progress;
  progress.is_cancelled = reader.is_cancelled();
  write_checkpoint(folder, state_of(reader.manifest()), tensors, options, progress);
}

/// Each tensor of that kind in `shards` parts; tensors without elements go to the first shard. Empty if the kind has no tensors.
std::vector<std::vector<ShardPiece>> parts_of(const CheckpointReader& reader, TensorKind kind, int32_t shards) {
  const std::vector<LogicalTensor>& tensors = reader.manifest().tensors;
  std::vector<std::vector<ShardPiece>> parts;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].kind != kind) continue;
    parts.resize(static_cast<size_t>(shards));
    const int64_t elements = tensors[t].shape.elements();
    if (elements == 0) parts[0].push_back({t, 0, 0, {}, {}});
    for (int32_t s = 0; s < shards; ++s)
      if (const auto [begin, end] = shard_range(elements, s, shards); begin < end)
        parts[static_cast<size_t>(s)].push_back({t, begin, end, {}, copy_of(reader, tensors[t], begin)});
  }
  return parts;
}

void write_parts(const CheckpointReader& reader, const std::string& folder, int32_t shards, const WriteOptions& options) {
  Manifest manifest = state_of(reader.manifest());
  for (const LogicalTensor& t : reader.manifest().tensors) manifest.tensors.push_back({t.name, t.kind, t.dtype, t.shape, {}});
  WriteProgress progress;
  progress.is_cancelled = reader.is_cancelled();
  progress.all = manifest.bytes();
  ShardWriter writer(options.bytes_per_second, progress);
  for (const TensorKind kind : {TensorKind::parameter, TensorKind::optimizer, TensorKind::host})
    write_shards(folder, manifest, kind, parts_of(reader, kind, shards), writer);
  commit_manifest(folder, manifest);
}

void discard(const std::string& folder) noexcept {
  try {
    os::remove_folder(folder);
  } catch (...) {  // the error that ended the writing is the one reported
    return;
  }
}

}  // namespace

ShardRange shard_range(int64_t elements, int32_t shard, int32_t shards) {
  const int64_t grains = (elements + kShardGrain - 1) / kShardGrain;
  // floor(grains * i / shards), without the product of the two.
  const auto edge = [&](int64_t i) { return std::min((grains / shards * i + grains % shards * i / shards) * kShardGrain, elements); };
  return {edge(shard), edge(int64_t{shard} + 1)};
}

void reshard(const CheckpointReader& reader, const std::string& folder, int32_t shards, const WriteOptions& options) {
  check(0 <= shards && shards <= kMaxShards, "reshard: shards must be 1 to ", kMaxShards, ", or 0 for whole tensors, got ", shards);
  os::require_kind(folder, os::PathKind::folder);
  os::make_folders(folder);
  check(os::list_folder(folder).empty(), "reshard: ", folder, " is not empty; name an empty or new folder");
  try {
    if (shards == 0)
      write_whole(reader, folder, options);
    else
      write_parts(reader, folder, shards, options);
    os::sync_folder(folder + "/..");
  } catch (...) {
    discard(folder);
    throw;
  }
}

}  // namespace st
