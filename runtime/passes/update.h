// The optimizer's update of every parameter that has a gradient.
#pragma once

#include <functional>
#include <span>

#include "ir/optimizer_choice.h"
#include "ir/program.h"

namespace st {

/// `is_weight`: the parameter is an operand of products and not the table of an embedding.
using ChooseOptimizer = std::function<OptimizerChoice(const Slot& parameter, bool is_weight)>;

/// Appends one optimizer node per parameter, on its layout, with state slots "<state>.<parameter>", initially zero. Call after clip().
/// - Adds the control slot "rates", f64 [learning rate, number of this update from 1], which the host writes before each step.
/// - Reuses existing state slots (keep_moments).
/// - The update also writes a working copy that a step makes in its first micro-batch, with the same bits, so that the next step need
///   not read the parameter; a borrowed copy is written only by the update.
/// - Sharded (zero_shard): each rank updates its shards, with state for them only. Parameters and their working copies are then gathered,
///   except borrowed copies, parameters that stay sharded (gather_units), those that all ranks share (share_masters), and `shared`.
void update(Program& program, const ChooseOptimizer& choose, std::span<const SlotId> shared = {});

/// Adds the optimizer slots of another program of the same model, in its order, so that both place moments at the same addresses. Call
/// before update().
void keep_moments(Program& program, const Program& of);

}  // namespace st
