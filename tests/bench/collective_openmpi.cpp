// OpenMPI's side of `scaletrain bench collective`: ranks that take orders and run OpenMPI's collectives.
//
// Usage: mpirun -n RANKS collective_openmpi FOLDER
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "collective_probe.h"

namespace {

void check(int code) {
  if (code != MPI_SUCCESS) throw std::runtime_error("MPI error " + std::to_string(code));
}

class OpenMpiCalls final : public cli::CollectiveCalls {
 public:
  using CollectiveCalls::CollectiveCalls;

  void all_reduce(float* data, int64_t elements) override {
    check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  }
  void reduce_scatter(const float* whole, float* own, int64_t elements) override {
    share(elements);
    check(MPI_Reduce_scatter(whole, own, counts_.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  }
  void all_gather(const float* own, float* whole, int64_t elements) override {
    share(elements);
    check(MPI_Allgatherv(own, counts_[static_cast<size_t>(rank())], MPI_FLOAT, whole, counts_.data(), begins_.data(), MPI_FLOAT,
                         MPI_COMM_WORLD));
  }

 private:
  void share(int64_t elements) {
    counts_.resize(static_cast<size_t>(size()));
    begins_.resize(counts_.size());
    for (int r = 0; r < size(); ++r) {
      begins_[static_cast<size_t>(r)] = static_cast<int>(share_begin(elements, r));
      counts_[static_cast<size_t>(r)] = static_cast<int>(share_begin(elements, r + 1) - share_begin(elements, r));
    }
  }

  std::vector<int> counts_, begins_;
};

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    if (count != 2) throw std::runtime_error("give the folder of the pipes");
    OpenMpiCalls calls(rank, size);
    cli::serve_collectives(calls, arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_openmpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return 0;
}
