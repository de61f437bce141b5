// The rows that the ranks of a host's group were given for a step.
#pragma once

#include <cstdint>
#include <span>

#include "base/mesh.h"
#include "comm/communicator.h"
#include "parts/rank_report.h"

namespace st {

/// The rows given to all ranks together, or kFromData, from the reports of a step. Throws the same rank_mismatch on all ranks if the rows
/// are not those of the first micro-batches of `batch` rows each, dealt to the data ranks in turn; all stages of a data rank have its rows.
int64_t rows_of_all(const Communicator& ranks, const Mesh& mesh, std::span<const RankReport> reports, int64_t batch);

}  // namespace st
