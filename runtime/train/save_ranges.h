// The ranges of a run's tensors that each rank of a group writes into a checkpoint, and the exchange that makes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/shared_save.h"
#include "train/state_tensor.h"

namespace st {

/// A checkpoint has contiguous ranges of a tensor (checkpoint/README.md). A rank writes what it has, where that is one range; a tensor that
/// tensor parallelism cuts within its rows is first exchanged into ranges of equal size on the same ranks.
class SaveRanges {
 public:
  /// `program`: of this rank's step. Borrows the tensor.
  SaveRanges(const StateTensor& tensor, const Program& program);

  /// One range of each rank that writes some of the tensor; for a tensor without elements [0, 0) of rank 0.
  const std::vector<SharedSave::Range>& all() const { return ranges_; }
  /// Whether ranks write elements that they do not have.
  bool are_exchanged() const { return are_exchanged_; }
  /// Collective call of all ranks, if are_exchanged(): fills `own`, this rank's range, with what all of them have; no range: empty.
  void exchange(Communicator& ranks, Backend& backend, std::span<std::byte> own) const;

 private:
  struct Source {
    int32_t rank;
    PieceRange range;
  };
  void move(Communicator& ranks, Backend& backend, const Source& from, const Source& to, std::span<std::byte> own) const;

  const StateTensor& tensor_;
  std::vector<Source> sources_;  // by rank
  std::vector<SharedSave::Range> ranges_;
  bool are_exchanged_ = false;
};

}  // namespace st
