// Our ranks in a benchmark of collectives.
#pragma once

#include <string>
#include <vector>

namespace cli {

/// This program as ranks of a CollectiveSide: all of them as threads of one process, or each as one.
std::vector<std::vector<std::string>> own_collective_threads(int ranks, const std::string& folder);
std::vector<std::vector<std::string>> own_collective_processes(int ranks, const std::string& folder);

/// What they run: rank -1 is all ranks.
void serve_own_collectives(const std::string& folder, int rank, int ranks);

}  // namespace cli
