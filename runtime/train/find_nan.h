// Finds the first NaN or infinite value of a step. A second run of the step calls it after each instruction.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "plan/plan.h"

namespace st {

/// Searches on one rank, then determines the first finding over all ranks.
class FindNan {
 public:
  /// `step`: the attempt, from 1. This is rank `rank` of `size`; its round g is micro-batch g * size + rank.
  FindNan(Backend& backend, int64_t step, int32_t size, int32_t rank) : backend_(backend), step_(step), size_(size), rank_(rank) {}

  /// Keeps the first instruction that made a value that is not finite; with one rank, throws it. Gathered values are not checked here but
  /// where they are read.
  void look(const Plan& plan, const Instruction& at, const Call& call);

  /// Collective call of all ranks (null: one rank) after the second run. Throws the same not_finite on all ranks; the group stays usable.
  /// - The message has op, scope, tensor, index, micro-batch and rank, and any slot (such as a weight) that the op read and that was not
  ///   finite before. The error's place has the op and that slot, or the slot that the op wrote.
  /// - Over ranks, the finding of the earliest micro-batch is first, as on one rank; a sum over ranks comes after its round.
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
