// A value of a run that outlives its step, where it lies: in one piece, or in one on each of several ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "exec/executor.h"

namespace st {

struct StateTensor {
  struct Piece {
    int64_t first = 0, elements = 0;  // of the whole, flattened
    std::byte* data = nullptr;        // device memory; null: another process has it
    int32_t rank = 0;                 // of a group of processes: who has it
  };
  std::string name;
  Role role = Role::parameter;
  SlotId of = -1;                  // optimizer: the parameter's slot
  Type type;                       // of the whole
  bool in_pieces = false;          // the ranks have one each, or none; else each rank has all of it
  std::vector<Piece> pieces = {};  // in order, all of it

  /// Some bytes of the whole, from byte `first` on: those that are here.
  void to_host(Backend& backend, int64_t first, std::span<std::byte> out) const;
};

/// Every parameter and optimizer value, by name; of what is tied there is one. `ranks`: the executors of a training step that are here, by
/// rank; where each rank has the state whole the first will do. `others`: pieces that other processes have. Borrows the executors.
std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks, std::span<const StateTensor> others = {});

/// Of a step's state of which each rank of a group has pieces, those of the others. To be called by all ranks.
std::vector<StateTensor> pieces_of_others(Communicator& ranks, const Executor& own);

/// The sum of a parameter's gradients that a step has left, likewise; of processes `ranks` is this one's. No pieces: it has none.
StateTensor gradient_of(std::span<const Executor* const> ranks, const Slot& parameter);

}  // namespace st
