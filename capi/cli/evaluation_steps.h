// The steps after which a run evaluates.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

/// In ascending order; 0 is before the first step, `steps` the end. Evaluates before training and after each tenth of it, less often if all
/// evaluations together would read more rows than training does (so they add at most about a third to its time); at least at the end.
std::vector<int64_t> evaluation_steps(int64_t steps, int64_t rows_per_step, int64_t validation_rows);

}  // namespace cli
