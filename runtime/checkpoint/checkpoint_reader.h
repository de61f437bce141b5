// One checkpoint, open for reading: any bytes of any tensor, whoever wrote it on however many ranks; each byte is checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_access.h"
#include "base/workers.h"
#include "checkpoint/manifest.h"

namespace st {

/// What is wrong, and where.
struct CheckpointProblem {
  std::string file, tensor;  // empty: not one's
  int64_t block = -1;        // of the tensor's piece in that file; -1: not one's
  int64_t offset = -1;       // in the file
  std::string message;       // with all of these in it
};

/// Bytes of a shard that a reader needs: what the plan of a load is made of.
struct ReadRange {
  int32_t file = 0;
  int64_t offset = 0, bytes = 0;  // in the file
  int64_t to = 0;                 // in what is asked for
};

class CheckpointReader {
 public:
  /// Holds the checkpoint, so that nobody's retention removes it meanwhile. Reads and checks manifest and headers, not the data: throws
  /// corrupt with file and tensor, not_found for what is no checkpoint (a leftover of a killed save says so), unsupported for a newer one.
  explicit CheckpointReader(std::string folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  /// Which bytes of which shard make up elements [begin, end) of a tensor, in order. Depends on the manifest alone.
  std::vector<ReadRange> plan(const LogicalTensor& tensor, int64_t begin, int64_t end) const;

  /// Elements [begin, end) of a tensor, as row-major bytes of its dtype. Reads whole blocks around them, checks each, and throws corrupt
  /// with file, tensor, block and offset. From several threads at once.
  void read(const LogicalTensor& tensor, int64_t begin, int64_t end, std::span<std::byte> out) const;

  /// Everything that is wrong with the files, at most `most` problems; empty: all of it is as it was written.
  std::vector<CheckpointProblem> verify(Workers& workers, int64_t most = 100) const;

  /// XXH3-128 over the tensors in name order: name, dtype, shape, bytes; of a trainer's checkpoint its state_digest(). Checks as read().
  std::string digest() const;

 private:
  std::string folder_;
  os::FileHold hold_;
  Manifest manifest_;
  std::vector<os::InputFile> files_;
  std::vector<std::vector<int64_t>> offsets_;  // by tensor and piece: where it begins in its file
};

}  // namespace st
