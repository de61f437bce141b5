#include "shared_job.h"

#include <unistd.h>

#include <thread>

#include "base/digest.h"
#include "base/os/machine.h"
#include "base/text.h"

namespace st {

std::string own_job(const std::string& name) { return text(name, " of process ", os::process_id()); }

std::string path_of_segment(const std::string& job) {
  Digest digest;
  digest.update(job);
  return text("/dev/shm/scaletrain-", geteuid(), "-", digest.hex());
}

ProcessGroupOptions options_of(const std::string& job, int rank, int size, double patience) {
  ProcessGroupOptions options;
  options.job = job;
  options.rank = rank;
  options.size = size;
  options.patience = patience;
  return options;
}

std::vector<std::exception_ptr> caught_on_ranks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> caught(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        caught[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return caught;
}

void rethrow_first(const std::vector<std::exception_ptr>& caught) {
  for (const std::exception_ptr& one : caught)
    if (one) std::rethrow_exception(one);
}

void run_ranks(int size, const std::function<void(int rank)>& body) { rethrow_first(caught_on_ranks(size, body)); }

std::vector<std::unique_ptr<Transport>> ends_of_ranks(int size, const std::function<std::unique_ptr<Transport>(int rank)>& join) {
  std::vector<std::unique_ptr<Transport>> ends(static_cast<size_t>(size));
  run_ranks(size, [&](int rank) { ends[static_cast<size_t>(rank)] = join(rank); });
  return ends;
}

std::vector<std::unique_ptr<Transport>> make_process_group(const std::string& job, int size, int64_t ring_bytes) {
  return ends_of_ranks(size, [&](int rank) {
    ProcessGroupOptions options = options_of(job, rank, size);
    options.ring_bytes = ring_bytes;
    return join_process_group(options);
  });
}

}  // namespace st
