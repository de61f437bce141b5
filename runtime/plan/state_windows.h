// Arenas in the host's memory: which bytes of them nodes compute with at a time, in copies that the device has meanwhile.
#pragma once

#include <array>
#include <cstddef>

#include "ir/memory.h"
#include "ir/program.h"

namespace st {

/// Moves the chosen arenas of a device to the host's memory.
/// - Nodes compute with copies of them. The nodes that use these are cut into windows of at most a 16th of what their section may use of
///   them, or of one node that uses more. Those of a window make the same kind of copies of weights, or none, and are run by the same
///   ranks.
/// - The next window's copies arrive while one computes, so there is room for two: in the stash, for the update, if it does not read it and
///   it is large enough, else at the end of Arena::buckets, which grows.
/// - A message to another stage is a window of its own, whose room no other window has: it leaves while later nodes compute.
/// Throws internal if forward or backward uses the optimizer's state, or an exchange that has not ended at its node one of these arenas.
void move_to_host(const Program& program, MemoryLayout& layout, const std::array<bool, kArenas>& arenas);

/// Whether a window must not be fetched before the nodes of another one, of the same section, have run: they have the same room.
bool shares_room(const StateWindow& window, const StateWindow& before);
/// Whether a window must not be fetched before another one, of the same section, has been written back.
bool follows(const StateWindow& window, const StateWindow& before);

}  // namespace st
