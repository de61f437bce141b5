// Where parameters are cut into the ranks' pieces.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Elements between places where a parameter may be cut: a multiple of kCutGrain, or past its end, then one rank has all of it.
using CutGrain = std::function<int64_t(const Slot& parameter)>;
constexpr int64_t kCutGrain = 1024;  // blocks of the gradient norm: a piece's partial sums are the whole's (traps.md, order of sums 4)

/// Fills program.cuts for the ranks of the data axis. Each parameter's grains go to the ranks in order, evenly; who gets one more goes
/// round over all parameters, so that no rank has more than one grain more than another. Depends on neither the bucket nor the stage of
/// ZeRO.
void cut_parameters(Program& program, const CutGrain& grain_of = {});

/// How many elements of a parameter a rank has.
inline int64_t piece_elements(const Program& program, SlotId parameter, int32_t rank) {
  const Ints& cuts = program.cuts[static_cast<size_t>(parameter)];
  return cuts[static_cast<size_t>(rank) + 1] - cuts[static_cast<size_t>(rank)];
}

/// The slot for this rank's piece of `whole`, a slot of a cut parameter's elements, made if need be: "part.<whole>". -1: this rank has
/// none.
SlotId part_of(Program& program, SlotId whole, SlotId parameter);

}  // namespace st
