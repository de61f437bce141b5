// One checkpoint on its way to the disk: shards, then the manifest, so that a kill at any moment leaves a whole checkpoint or a leftover.
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

/// A tensor to be written: its row-major bytes where they lie, or from a function that writes [first, first + out.size()) of them.
struct WrittenTensor {
  std::string name;
  TensorKind kind = TensorKind::parameter;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;                                   // empty: copy gives them
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // into a window of some MB, piece by piece
};

struct WriteOptions {
  int64_t file_bytes = int64_t{4} << 30;  // a shard takes tensors up to so many bytes, and one that is larger alone
  double bytes_per_second = 0;            // the cap; 0: none
};

/// Writes all files into `folder`, which is there and holds nothing: each shard, fsync; the manifest under another name, fsync; fsync of
/// the folder; rename; fsync of the folder. `manifest` has all but files and tensors, which are filled in and returned. Which tensor lies
/// where depends on names, kinds, dtypes, shapes and file_bytes alone, so the same tensors make the same shards, whoever writes them.
/// Throws what the disk says, with path, offset and tensor; the caller removes what there is of the folder, and syncs the one it is in.
Manifest write_checkpoint(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> tensors, const WriteOptions& options,
                          WriteProgress& progress);

// The same in steps, for who cuts tensors into pieces.

/// Elements [begin, end) of manifest.tensors[tensor]; a tensor without elements is [0, 0) of it.
struct ShardPiece {
  size_t tensor = 0;
  int64_t begin = 0, end = 0;
  std::span<const std::byte> bytes;                                   // of the piece; empty: copy gives them
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // `first` from the piece's beginning
};

/// "model.safetensors" when there is one, as Hugging Face names them: "model-00001-of-00003.safetensors". `index` from 0.
std::string shard_name(TensorKind kind, size_t index, size_t count);

/// Writes one shard. Adds the file to manifest.files, and the pieces to their tensors: called with a tensor's pieces in order.
void write_shard(const std::string& folder, const std::string& name, Manifest& manifest, std::span<const ShardPiece> pieces,
                 ShardWriter& writer);

/// Hugging Face's index of parameters in several files: each tensor as a file has it, and that file. Adds it to manifest.files.
using IndexPlace = std::pair<std::string, std::string>;
void write_index(const std::string& folder, Manifest& manifest, std::span<const IndexPlace> places, int64_t bytes, ShardWriter& writer);

/// Writes all shards of one kind, and behind several of parameters their index.
void write_shards(const std::string& folder, Manifest& manifest, TensorKind kind, std::span<const std::vector<ShardPiece>> shards,
                  ShardWriter& writer);

/// The commit: once every shard is on the disk, and not before.
void commit_manifest(const std::string& folder, const Manifest& manifest);

}  // namespace st
