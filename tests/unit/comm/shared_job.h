// A process group for a test: its ranks are threads here, and its name is the test's own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/local/process_group.h"

namespace st {

/// A name that no other test and no other run has.
std::string own_job(const std::string& name);

/// Where a job's segment stands in /dev/shm while its ranks come.
std::string path_of_segment(const std::string& job);

/// Calls body(rank) in a thread for each, and waits for all. What one throws is kept; the first rank's that did is thrown.
void run_ranks(int size, const std::function<void(int rank)>& body);

/// One end a rank, as make_thread_group() does.
std::vector<std::unique_ptr<Transport>> make_process_group(const std::string& job, int size, int64_t ring_bytes = 0);

}  // namespace st
