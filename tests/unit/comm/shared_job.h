// Ranks that are threads of a test, and process groups of such ranks under unique names.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/local/process_group.h"

namespace st {

/// A name that no other test or run uses.
std::string own_job(const std::string& name);

/// The path of a job's segment in /dev/shm while its ranks join.
std::string path_of_segment(const std::string& job);

/// Calls body(rank) on a thread for each rank and waits for all. Returns each rank's exception; null: none.
std::vector<std::exception_ptr> caught_on_ranks(int size, const std::function<void(int rank)>& body);
/// Rethrows the first that is not null.
void rethrow_first(const std::vector<std::exception_ptr>& caught);
/// caught_on_ranks(), then rethrow_first().
void run_ranks(int size, const std::function<void(int rank)>& body);

/// The options with which a rank joins the group of that job.
ProcessGroupOptions options_of(const std::string& job, int rank, int size, double patience = 20);

/// Returns one end per rank, as make_thread_group() does; each joins on its own thread.
std::vector<std::unique_ptr<Transport>> ends_of_ranks(int size, const std::function<std::unique_ptr<Transport>(int rank)>& join);
std::vector<std::unique_ptr<Transport>> make_process_group(const std::string& job, int size, int64_t ring_bytes = 0);

}  // namespace st
