// The optimizer's update of every parameter that has a gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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
///   `at_a_time`: bytes that a node gathers, unless it gathers one tensor.
void update(Program& program, const ChooseOptimizer& choose, std::span<const SlotId> shared = {},
            int64_t at_a_time = std::numeric_limits<int64_t>::max());

/// The end of the group of tensors that begins with the `first`: of at most so many bytes, whole ones, or of one tensor. Alike on all
/// ranks.
size_t end_of_group(const Program& program, std::span<const SlotId> tensors, size_t first, int64_t at_a_time);

/// Adds the optimizer slots of another program of the same model, in its order, so that both place moments at the same addresses. Call
/// before update().
void keep_moments(Program& program, const Program& of);

}  // namespace st
