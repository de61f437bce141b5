// The ranks that a launcher has made of this program, as a run sees them: who this one is, and what they tell each other between steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"

namespace cli {

/// One rank alone, where no launcher says otherwise: then nothing is exchanged, and each call gives back what it was given.
class RunRanks {
 public:
  RunRanks() = default;
  /// Joins the others, by the environment of scaletrain launch, torchrun, mpirun or srun. Throws Failure where they do not come. From then
  /// on stdout is rank 0's: what the others print is dropped. deadline: seconds for which ranks wait for each other. transport: local,
  /// gloo, mpi, or empty: as the environment says; one of processes where there is no launcher is refused.
  RunRanks(st_context* context, double deadline, const std::string& transport);

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  bool is_first() const { return rank_ == 0; }
  st_communicator* communicator() const { return communicator_.get(); }  // null: one rank

  /// Rank 0's object, on all of them.
  Json shared(const Json& of_first) const;
  /// The largest of all ranks', number by number.
  std::array<int64_t, 2> largest(std::array<int64_t, 2> own) const;
  /// A number of each rank, by rank.
  std::vector<double> gathered(double own) const;
  /// Rank 0 does this work, on a thread of its own, and the others wait for it: as long as it takes, while rank 0 lives. What it throws
  /// rank 0 alone throws on, when all have come back. No call of the communicator, nor of a trainer that makes one, may be in it.
  void await_first(const std::function<void()>& work) const;
  /// The others end with this reason.
  void end(const std::string& reason) const noexcept;

 private:
  Communicator communicator_;
  int32_t rank_ = 0, size_ = 1;
  double deadline_ = 0;
};

/// Whether SCALETRAIN_DEBUG, a list of words with commas between, has "ranks": then each rank tells what the library logs on stderr.
bool is_debugging_ranks();

}  // namespace cli
