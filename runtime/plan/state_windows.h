// Optimizer state in the host's memory: which bytes of it an update computes with at a time, in copies that the device has meanwhile.
#pragma once

#include <array>
#include <cstddef>

#include "ir/memory.h"
#include "ir/program.h"

namespace st {

/// Moves the chosen arenas of a device to the host's memory.
/// - The update computes with copies of the optimizer's arena. The nodes that use it are cut into windows of at most a 16th of the arena,
///   or of one node that uses more. Throws internal if another section uses it.
/// - The next window's copies arrive while one computes, so there is room for two: in the stash, if the update does not read it and it is
///   large enough, else at the end of Arena::buckets, which grows.
/// - The other arenas have no windows: such a plan says what a step would take, and is not executed.
void move_to_host(const Program& program, MemoryLayout& layout, const std::array<bool, kArenas>& arenas);

/// Whether a window must not be fetched before another one, of the same section, has been written back.
bool follows(const StateWindow& window, const StateWindow& before);

}  // namespace st
