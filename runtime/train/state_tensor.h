// A tensor of a run's state and its place in memory: whole, or as one shard on each of several ranks.
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
    PieceRange range = {};
    Address data = {};  // device memory; none: in another process
    int32_t rank = 0;   // of the mesh; in a group of processes, who answers for the range
  };
  std::string name;
  Role role = Role::parameter;
  SlotId of = -1;                  // optimizer: the parameter's slot
  Type type;                       // of the whole
  bool is_sharded = false;         // true: each rank has at most one piece; false: each rank has all of it
  std::vector<Piece> pieces = {};  // all shards, in order

  /// Copies bytes of the whole from byte `first`, whole elements, as far as they are in this process.
  void to_host(Backend& backend, int64_t first, std::span<std::byte> out) const;
};

/// Every parameter and optimizer tensor, by name; tied weights count once. `ranks`: this process's executors of a training step, by rank;
/// one is enough if each rank has the whole state. `others`: shards in other processes. Borrows the executors.
std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks, std::span<const StateTensor> others = {});

/// The other ranks' shards of a step's state, without those that this rank has too. Collective call.
std::vector<StateTensor> pieces_of_others(Communicator& ranks, const Executor& own);

/// The summed gradient of a parameter after a step, likewise; in a group of processes `ranks` has only this one's executor. No shards: the
/// parameter has no gradient.
StateTensor gradient_of(std::span<const Executor* const> ranks, const Slot& parameter);

}  // namespace st
