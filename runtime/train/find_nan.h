// Looks for the first value of a step that is NaN or infinite: what a second run of the step calls after each instruction.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "plan/plan.h"

namespace st {

/// Looks on one rank, and then tells which of all ranks' findings is the first.
class FindNan {
 public:
  /// `step`: the attempt, from 1. Of `size` ranks this is `rank`, whose rounds are micro-batches round * size + rank.
  FindNan(Backend& backend, int64_t step, int32_t size, int32_t rank) : backend_(backend), step_(step), size_(size), rank_(rank) {}

  /// Keeps the first instruction that made a value that is not finite; where there is one rank, throws it. What ranks gather is not looked
  /// at, but by who reads it.
  void look(const Plan& plan, const Instruction& at, const Call& call);

  /// To be called by all ranks (null: there is one), when the step has been run again. Throws not_finite, on all of them the same: the
  /// message names op, scope, tensor, index, micro-batch and rank, and what it read from a slot (a weight, say) that was not finite before;
  /// the op and that slot, or the one it wrote, are in the error's place too. Of several ranks' the first is that of the first micro-batch,
  /// as on one rank; sums over ranks come behind their round. The group is whole after that.
  [[noreturn]] void tell(Communicator* ranks) const;

 private:
  struct Found {
    int64_t order;
    Error error;
  };

  std::optional<Error> check(const Plan& plan, const Instruction& at, const Call& call) const;
  [[noreturn]] void tell_first(Communicator& ranks) const;

  Backend& backend_;
  int64_t step_;
  int32_t size_, rank_;
  std::optional<Found> found_;
};

}  // namespace st
