// Runs a plan on shadow memory, with all work beside the computing thread as late as its waits allow: what a wrong order would change
// shows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"

namespace st {

enum class Beside { at_once, as_late_as_allowed };

/// What each instruction of two steps reads, and the memory afterwards, as hashes. Equal for `at_once` and `as_late_as_allowed` if the
/// waits order all accesses. `without`: the index of an await or release that is left out.
std::vector<uint64_t> seen_in_run(const Plan& plan, Beside beside, std::optional<size_t> without = {});

}  // namespace st
