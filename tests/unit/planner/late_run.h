// Runs a plan on shadow memory, with the work of other streams as late as the computing thread's waits allow: a wrong order changes what is
// read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"

namespace st {

enum class Timing { at_once, as_late_as_allowed };

/// Hashes of the bytes that each instruction of two steps reads, and of the memory afterwards. Equal for `at_once` and `as_late_as_allowed`
/// if the waits order all accesses. `without`: the index of an await or release that is left out.
std::vector<uint64_t> seen_in_run(const Plan& plan, Timing timing, std::optional<size_t> without = {});

}  // namespace st
