// Recompute `auto`: the least arithmetic again that fits a number of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace st {

/// Bytes that a step takes for activations (arenas activations, stash and workspace) when these scopes are recomputed, planned to the
/// end. Handed in, since only the recipe knows the passes behind recompute.
using PlannedActivations = std::function<int64_t(std::span<const RegionId> scopes)>;

/// Of every outermost boundary scope nothing, some of the boundary scopes directly in it, or all of it: what is recomputed costs the
/// least (OpCost::weight) of all that take at most `budget` bytes as planned. `program`: after autodiff(). Throws out_of_memory when
/// nothing fits, with the budget, the least that can be reached and what that would cost. `planned_on_all`: what the rank that needs most
/// takes, so that the budget which the error names is one that no rank refuses.
///
/// How it is found: up to 128 choices are all planned, the cheapest first. Of more it may miss the cheapest by a little: bytes saved in the
/// stash add up over scopes, and of what backward needs beside it the largest counts. So it is a knapsack for each such largest need; what
/// comes out is planned, and asked to save more while that is too much.
std::vector<RegionId> scopes_that_fit(const Program& program, int64_t budget, const PlannedActivations& planned,
                                      const PlannedActivations& planned_on_all);

}  // namespace st
