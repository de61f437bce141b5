// One checkpoint, open for reading: any bytes of any tensor, whoever wrote it on however many ranks; each byte is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/os/file_access.h"
#include "base/workers.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace st {

/// What is wrong, and where.
struct CheckpointProblem {
  std::string file, tensor;  // the file's name in the folder; empty: not one's
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
  /// corrupt with file and tensor, also where a file is missing; not_found for what is no checkpoint (a leftover of a killed save says so);
  /// unsupported for a newer one. What reads all of a tensor asks `is_cancelled` (may be empty; from several threads) now and then, and
  /// throws cancelled; read(), behind which there may be no way back, does not.
  explicit CheckpointReader(std::string folder, std::function<bool()> is_cancelled = {})
      : CheckpointReader(std::move(folder), nullptr, std::move(is_cancelled)) {}

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const std::function<bool()>& is_cancelled() const { return is_cancelled_; }
  void require_not_cancelled() const;

  /// Which bytes of which shard make up elements [begin, end) of a tensor, in order. Depends on the manifest alone.
  std::vector<ReadRange> plan(const LogicalTensor& tensor, int64_t begin, int64_t end) const;

  /// Elements [begin, end) of a tensor, as row-major bytes of its dtype. Reads whole blocks around them, checks each, and throws corrupt
  /// with file, tensor, block and offset. From several threads at once.
  void read(const LogicalTensor& tensor, int64_t begin, int64_t end, std::span<std::byte> out) const;

  /// All of a tensor, window by window of some MB: each block is read and checked once.
  void stream(const LogicalTensor& tensor, const WriteBytes& write) const;

  /// Reads every block of these tensors; throws the first problem as read() does.
  void check(std::span<const LogicalTensor* const> tensors, Workers& workers) const;
  /// Everything that is wrong with the files, at most `most` problems; empty: all of it is as it was written.
  std::vector<CheckpointProblem> verify(Workers& workers, int64_t most = 100) const;
  /// The same of a folder that perhaps cannot be opened: what the constructor would throw is then among the problems, and what can be
  /// looked at is. Throws not_found for what is no checkpoint.
  static std::vector<CheckpointProblem> problems_of(const std::string& folder, Workers& workers, int64_t most = 100,
                                                    std::function<bool()> is_cancelled = {});

  /// XXH3-128 over the tensors in name order: name, dtype, shape, bytes. Of a trainer's checkpoint it is over parameters and optimizer
  /// state, so its state_digest(); of a host's, over all. Checks as read().
  std::string digest() const;

 private:
  using Problems = std::vector<CheckpointProblem>;
  struct Overlap {  // of a piece with what is asked for, in bytes
    const TensorPiece* piece;
    int64_t offset;       // of the piece in its file
    int64_t first, last;  // in the piece
    int64_t to;           // in what is asked for
  };
  struct BadBlock;

  /// With `problems`, shards that are no good are told there and left out.
  CheckpointReader(std::string folder, Problems* problems, std::function<bool()> is_cancelled);
  os::InputFile open_shard(size_t file) const;
  void use_file(const TensorPiece& piece, const std::function<void(const os::InputFile&)>& use) const;
  const std::vector<int64_t>& offsets_of(const LogicalTensor& tensor) const;
  std::vector<Overlap> overlaps(const LogicalTensor& tensor, int64_t begin, int64_t end) const;
  std::vector<BadBlock> read_blocks(std::span<const LogicalTensor* const> tensors, Workers& workers, int64_t most) const;

  std::string folder_;
  std::function<bool()> is_cancelled_;
  os::FileHold hold_;
  Manifest manifest_;
  std::vector<std::optional<os::InputFile>> files_;  // the first of them stay open
  std::vector<std::vector<int64_t>> offsets_;        // by tensor and piece: where it begins in its file; -1: that one is no good
};

}  // namespace st
