// Ranks that are threads of a test, and process groups of them whose names are the test's own.
#pragma once

#include <exception>
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

/// Calls body(rank) on a thread for each rank and waits for all. Returns what each rank threw; null: nothing.
std::vector<std::exception_ptr> caught_on_ranks(int size, const std::function<void(int rank)>& body);
/// Throws the first that is not null.
void rethrow_first(const std::vector<std::exception_ptr>& caught);
/// Both.
void run_ranks(int size, const std::function<void(int rank)>& body);

/// The options with which a rank joins the group of that job.
ProcessGroupOptions options_of(const std::string& job, int rank, int size, double patience = 20);

/// One end a rank, as make_thread_group() does: each joins on a thread of its own.
std::vector<std::unique_ptr<Transport>> ends_of_ranks(int size, const std::function<std::unique_ptr<Transport>(int rank)>& join);
std::vector<std::unique_ptr<Transport>> make_process_group(const std::string& job, int size, int64_t ring_bytes = 0);

}  // namespace st
