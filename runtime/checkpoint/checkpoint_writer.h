// Writes one checkpoint: shards, then the manifest, so that a kill at any moment leaves either a complete checkpoint or a leftover.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/shard_file.h"

namespace st {

/// A tensor to write: its row-major bytes, borrowed, or a function that writes [first, first + out.size()) of them to `out`.
struct WrittenTensor {
  std::string name;
  TensorKind kind = TensorKind::parameter;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;                                   // empty: use copy
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // called for one window of a few MB after the other
};

struct WriteOptions {
  int64_t file_bytes = int64_t{4} << 30;  // most bytes of tensors in a shard; a larger tensor has a shard of its own
  double bytes_per_second = 0;            // cap on the write speed; 0: none
};

/// Writes all files into `folder`, which exists and is empty, in this order: each shard, fsync; the manifest under a temporary name, fsync;
/// fsync of the folder; rename; fsync of the folder.
/// - manifest: complete except for files and tensors, which are filled in and returned.
/// - The layout depends on names, kinds, dtypes, shapes and file_bytes only, so equal tensors make equal shards.
/// - Throws the disk's error with path, offset and tensor. The caller then removes the folder and syncs its parent.
Manifest write_checkpoint(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> tensors, const WriteOptions& options,
                          WriteProgress& progress);

// The same in steps, for a caller that shards tensors.

/// Elements [begin, end) of manifest.tensors[tensor]; [0, 0) for a tensor without elements.
struct ShardPiece {
  size_t tensor = 0;
  int64_t begin = 0, end = 0;
  std::span<const std::byte> bytes;                                   // of the piece; empty: use copy
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // `first` counts from the beginning of the piece
};

/// "model.safetensors" if `count` is 1, else as Hugging Face names them: "model-00001-of-00003.safetensors". `index` counts from 0.
std::string shard_name(TensorKind kind, size_t index, size_t count);

/// Writes one shard. Adds the file to manifest.files and the pieces to their tensors; a tensor's pieces must come in order.
void write_shard(const std::string& folder, const std::string& name, Manifest& manifest, std::span<const ShardPiece> pieces,
                 ShardWriter& writer);

/// Writes Hugging Face's index of parameters in several files, which maps each tensor's name in its file to that file. Adds it to
/// manifest.files.
using IndexPlace = std::pair<std::string, std::string>;
void write_index(const std::string& folder, Manifest& manifest, std::span<const IndexPlace> places, int64_t bytes, ShardWriter& writer);

/// Writes all shards of one kind, and the index if there are several shards of parameters.
void write_shards(const std::string& folder, Manifest& manifest, TensorKind kind, std::span<const std::vector<ShardPiece>> shards,
                  ShardWriter& writer);

/// The commit. Call it only once every shard is on the disk.
void commit_manifest(const std::string& folder, const Manifest& manifest);

}  // namespace st
