// Finds the first NaN or infinite value of a step. A second run of the step calls it after each instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "plan/plan.h"

namespace st {

/// Searches on one rank, then determines the first finding over all ranks.
class FindNan {
 public:
  /// `step`: the attempt, from 1. `of`: the program of this rank. `parts`: of the model, by chunk of this stage; one stage: {0}.
  FindNan(Backend& backend, int64_t step, const Program& of, std::vector<int32_t> parts)
      : backend_(backend),
        step_(step),
        mesh_(of.mesh),
        at_{.data = of.rank, .tensor = of.tensor_rank, .stage = of.stage},
        parts_(std::move(parts)) {}

  /// Keeps the instruction that made a value that is not finite and, of those, is the first in the order of one rank; with one rank, throws
  /// it. Gathered and received values are not checked here but where they are read.
  void look(const Plan& plan, const Instruction& at, const Call& call);

  /// Ranks along each axis; null: one.
  struct Groups {
    Communicator *data, *tensor, *stages;
  };
  /// Collective call of all ranks after the second run. Throws the same not_finite on all ranks; the group stays usable.
  /// - The message has op, scope, tensor, index, micro-batch and rank, and any slot (such as a weight) that the op read and that was not
  ///   finite before. The error's place has the op and that slot, or the slot that the op wrote.
  /// - Over ranks, the finding of the earliest micro-batch is first, as on one rank, and of stages that of the part which computes first; a
  ///   sum over ranks comes after its round. Tensor ranks run the same section; the finding of the first node in it is first. An index is
  ///   of the rank's piece of a value, or of the whole parameter.
  [[noreturn]] void tell(const Groups& groups) const;

 private:
  struct Found {
    int64_t order;
    int32_t node;
    Error error;
  };

  int32_t rank() const { return rank_at(mesh_, at_); }
  int64_t order_of(const Section& section, int64_t micro_batch, bool is_sum) const;
  std::optional<Error> check(const Plan& plan, const Instruction& at, const Call& call) const;
  [[noreturn]] void tell_first(const Groups& groups) const;

  Backend& backend_;
  int64_t step_;
  Mesh mesh_;
  MeshPosition at_;
  std::vector<int32_t> parts_;
  std::optional<Found> found_;
};

}  // namespace st
