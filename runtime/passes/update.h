// The optimizer's update of every parameter that has a gradient.
#pragma once

#include <functional>
#include <span>

#include "ir/optimizer_choice.h"
#include "ir/program.h"

namespace st {

/// `is_weight`: products multiply by the parameter, and no embedding looks rows up in it.
using ChooseOptimizer = std::function<OptimizerChoice(const Slot& parameter, bool is_weight)>;

/// One optimizer node a parameter, on the layout found, over slots "<state>.<parameter>" that are created zero. Adds the control slot
/// "rates", f64 [learning rate, number of this update from 1], which the host writes before each step. A slot of the state that is there
/// already (keep_moments) is that one. A working copy that a step makes in its first micro-batch is left by the update too, the same bits,
/// so that the next step need not read the parameter for it; a lent one is written by the update alone. In pieces (zero_shard) each rank
/// updates its own, with state of these alone, and the parameters and their working copies are gathered, but for lent copies, what
/// ranks have pieces alone of (gather_units), and parameters that all ranks share (share_masters) or that `shared` names. Call after
/// clip().
void update(Program& program, const ChooseOptimizer& choose, std::span<const SlotId> shared = {});

/// Adds the optimizer slots of another program of the same model, in its order, so that both have their moments at the same places. Call
/// before update().
void keep_moments(Program& program, const Program& of);

}  // namespace st
