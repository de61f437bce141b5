// One checkpoint on its way to the disk: shards, then the manifest, so that a kill at any moment leaves a whole checkpoint or a leftover.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

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

/// For other threads to look at and to end it.
struct WriteProgress {
  std::atomic<int64_t> done{0}, all{0};  // bytes
  std::atomic<bool> cancelled{false};    // the write ends with Code::cancelled
};

/// Writes all files into `folder`, which is there and holds nothing: each shard, fsync; the manifest under another name, fsync; fsync of
/// the folder; rename; fsync of the folder. `manifest` has all but files and tensors, which are filled in and returned. Which tensor lies
/// where depends on names, kinds, shapes and file_bytes alone, so the same tensors make the same shards, whoever writes them.
/// Throws what the disk says, with path, offset and tensor; the caller removes what there is of the folder.
Manifest write_checkpoint(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> tensors, const WriteOptions& options,
                          WriteProgress& progress);

}  // namespace st
