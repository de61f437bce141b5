#include "shared_job.h"

#include <unistd.h>

#include <exception>
#include <thread>

#include "base/digest.h"
#include "base/os.h"
#include "base/text.h"

namespace st {

std::string own_job(const std::string& name) { return text(name, " of process ", os::process_id()); }

std::string path_of_segment(const std::string& job) {
  Digest digest;
  digest.update(job);
  return text("/dev/shm/scaletrain-", geteuid(), "-", digest.hex());
}

void run_ranks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

std::vector<std::unique_ptr<Transport>> make_process_group(const std::string& job, int size, int64_t ring_bytes) {
  std::vector<std::unique_ptr<Transport>> ends(static_cast<size_t>(size));
  run_ranks(size, [&](int rank) {
    ProcessGroupOptions options;
    options.job = job;
    options.rank = rank;
    options.size = size;
    options.ring_bytes = ring_bytes;
    ends[static_cast<size_t>(rank)] = join_process_group(options);
  });
  return ends;
}

}  // namespace st
