// One checkpoint, open for reading: any range of any tensor, whatever number of ranks wrote it. Every byte is verified.
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

/// A problem and its place.
struct CheckpointProblem {
  std::string file, tensor;  // the file's name in the folder; empty: concerns none
  int64_t block = -1;        // in the tensor's piece in that file; -1: concerns none
  int64_t offset = -1;       // in the file
  std::string message;       // contains all of these
};

/// A range of a shard, one step of a load plan.
struct ReadRange {
  int32_t file = 0;
  int64_t offset = 0, bytes = 0;  // in the file
  int64_t to = 0;                 // byte offset in the requested range
};

class CheckpointReader {
 public:
  /// Holds the checkpoint, so that no retention removes it meanwhile. Reads and checks the manifest and the headers, not the data.
  /// - Throws corrupt with file and tensor, also if a file or the manifest is missing; not_found if there is no such folder, or it is being
  ///   removed; unsupported if the format is newer.
  /// - Functions that read whole tensors poll `is_cancelled` (may be empty; called from several threads) and throw cancelled. read() does
  ///   not, because its caller may be unable to go back.
  explicit CheckpointReader(std::string folder, std::function<bool()> is_cancelled = {})
      : CheckpointReader(std::move(folder), nullptr, std::move(is_cancelled)) {}

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const std::function<bool()>& is_cancelled() const { return is_cancelled_; }
  void require_not_cancelled() const;

  /// The byte ranges of shards that make up elements [begin, end) of a tensor, in order. Depends on the manifest only.
  std::vector<ReadRange> plan(const LogicalTensor& tensor, int64_t begin, int64_t end) const;

  /// Reads elements [begin, end) of a tensor as row-major bytes of its dtype. Reads and verifies the whole blocks that contain them; throws
  /// corrupt with file, tensor, block and offset. Several threads may call it at once.
  void read(const LogicalTensor& tensor, int64_t begin, int64_t end, std::span<std::byte> out) const;

  /// Streams a whole tensor in windows of a few MB: each block is read and verified once.
  void stream(const LogicalTensor& tensor, const WriteBytes& write) const;

  /// Reads every block of these tensors; throws the first problem as read() does.
  void check(std::span<const LogicalTensor* const> tensors, Workers& workers) const;
  /// Reads all files and returns the problems found, at most `most`; empty: every byte is as it was written.
  std::vector<CheckpointProblem> verify(Workers& workers, int64_t most = 100) const;
  /// The same for a folder that may fail to open: the constructor's errors become problems, and everything readable is verified. Throws
  /// not_found if there is no such folder.
  static std::vector<CheckpointProblem> problems_of(const std::string& folder, Workers& workers, int64_t most = 100,
                                                    std::function<bool()> is_cancelled = {});

  /// XXH3-128 over the tensors in name order: name, dtype, shape, bytes. For a trainer's checkpoint it covers parameters and optimizer
  /// state and equals state_digest(); for a host's, all tensors. Verifies as read() does.
  std::string digest() const;

 private:
  using Problems = std::vector<CheckpointProblem>;
  struct Overlap {  // of a piece with the requested range, in bytes
    const TensorPiece* piece;
    int64_t offset;       // of the piece in its file
    int64_t first, last;  // in the piece
    int64_t to;           // in the requested range
  };
  struct BadBlock;

  /// If `problems` is not null, damaged shards are reported there and skipped.
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
  std::vector<std::optional<os::InputFile>> files_;  // the first ones stay open
  std::vector<std::vector<int64_t>> offsets_;        // by tensor and piece: byte offset in its file; -1: the shard is damaged
};

}  // namespace st
