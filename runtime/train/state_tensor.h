// A value of a run that outlives its step, where it lies: in one piece, or in one on each of several ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/executor.h"

namespace st {

struct StateTensor {
  struct Piece {
    int64_t first = 0, elements = 0;  // of the whole, flattened
    std::byte* data = nullptr;        // device memory
  };
  const Slot* slot = nullptr;  // one rank's: of its name, role and parameter
  Type type;                   // of the whole
  std::vector<Piece> pieces;   // in order, all of it

  /// Some bytes of the whole, from byte `first` on.
  void to_host(Backend& backend, int64_t first, std::span<std::byte> out) const;
};

/// Every parameter and optimizer value, by name; of what is tied there is one. `ranks`: the executors of a training step, by rank; where
/// each rank has the state whole the first will do. Borrows them.
std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks);

/// The sum of a parameter's gradients that a step has left, likewise. No pieces: it has none.
StateTensor gradient_of(std::span<const Executor* const> ranks, const Slot& parameter);

}  // namespace st
