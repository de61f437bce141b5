// After which steps a run evaluates.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

/// In ascending order; 0 is before the first step, `steps` the end. Before training and then every tenth of it, but so seldom that all
/// evaluations together read no more rows than training does (so they add at most about a third to its time); at least at the end.
std::vector<int64_t> evaluation_steps(int64_t steps, int64_t rows_per_step, int64_t validation_rows);

}  // namespace cli
