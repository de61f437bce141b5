// Optimizer state in the host's memory: which bytes of it an update computes with at a time, in copies that the device has meanwhile.
#pragma once

#include <array>
#include <cstddef>

#include "ir/memory.h"
#include "ir/program.h"

namespace st {

/// Moves the chosen arenas of a device to the host's memory.
/// - The optimizer's is computed with in copies. The nodes of the update that use it are cut into windows of at most a 16th of the arena,
/// or
///   of one node that uses more. Throws internal if another section uses it.
/// - While one window computes, the next one's copies arrive. Two windows have room at a time: where the stash was, which the update no
///   longer reads, or, where it does or has less, in addition to Arena::buckets.
/// - The other arenas have no windows: such a plan says what a step would take, and is not executed.
void move_to_host(const Program& program, MemoryLayout& layout, const std::array<bool, kArenas>& arenas);

/// Whether a window must not be fetched before another one, of the same section, has been written back.
bool follows(const StateWindow& window, const StateWindow& before);

}  // namespace st
