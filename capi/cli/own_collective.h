// Our ranks in a benchmark of collectives.
#pragma once

#include <string>
#include <vector>

namespace cli {

/// Command lines of this program as ranks of a CollectiveSide: all ranks as threads of one process, or one process per rank.
std::vector<std::vector<std::string>> own_collective_threads(int ranks, const std::string& folder);
std::vector<std::vector<std::string>> own_collective_processes(int ranks, const std::string& folder);

/// Runs in those processes. rank -1 runs all ranks.
void serve_own_collectives(const std::string& folder, int rank, int ranks);

}  // namespace cli
