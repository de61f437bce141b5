// Recompute `auto`: repeats the least arithmetic that fits in a number of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace st {

/// Bytes of a step's activations (arenas activations, stash and workspace) if these scopes are recomputed, from a complete plan. A
/// parameter, since only the recipe knows the passes after recompute.
using PlannedActivations = std::function<int64_t(std::span<const RegionId> scopes)>;

/// How many buffers of an outermost scope's stash the planned rank has; 0: another stage of the pipeline has the scope.
using StashBuffersOf = std::function<int64_t(RegionId outermost)>;

/// Returns the cheapest choice (OpCost::weight) whose plan takes at most `budget` bytes. A choice recomputes, for each outermost boundary
/// scope, nothing, some of the boundary scopes directly in it, or all of it. `program`: after autodiff(). `planned_on_all`: the bytes of
/// the rank that needs most. `buffers`: empty: one of each scope. Throws out_of_memory if nothing fits, with the budget, the smallest one
/// that fits on every rank, and its cost.
///
/// Search: up to 128 choices are all looked at, cheapest first, and planned unless their stash alone is too large. With more, the result
/// may cost a little more than the optimum. Bytes saved in the stash add up over scopes, while only the largest extra need of backward
/// counts; so it solves one knapsack per such largest need, plans the result, and demands more savings while the plan is too large.
std::vector<RegionId> scopes_that_fit(const Program& program, int64_t budget, const PlannedActivations& planned,
                                      const PlannedActivations& planned_on_all, const StashBuffersOf& buffers = {});

}  // namespace st
