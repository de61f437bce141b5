// The ranks that a launcher made of this program: this process's rank, and what ranks exchange between steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"

namespace cli {

/// A single rank unless a launcher says otherwise. Then nothing is exchanged, and each call returns its argument.
class RunRanks {
 public:
  RunRanks() = default;
  /// Joins the other ranks, found through the environment of scaletrain launch, torchrun, mpirun or srun. From then on only rank 0 prints:
  /// stdout of the others is dropped. Throws Failure if they do not join.
  /// deadline: seconds that ranks wait for each other. transport: local, gloo, mpi, or empty for the environment's; a transport between
  /// processes is refused without a launcher.
  RunRanks(st_context* context, double deadline, const std::string& transport);

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  bool is_first() const { return rank_ == 0; }
  st_communicator* communicator() const { return communicator_.get(); }  // null if there is one rank

  /// Returns rank 0's object on all ranks.
  Json shared(const Json& of_first) const;
  /// Element-wise maximum over all ranks.
  std::array<int64_t, 2> largest(std::array<int64_t, 2> own) const;
  /// One number per rank, by rank.
  std::vector<double> gathered(double own) const;
  /// Rank 0 runs `work` on a thread of its own while the others wait, for as long as rank 0 is alive. An exception is rethrown on rank 0
  /// alone, once all ranks have returned. `work` must not call the communicator, nor a trainer that uses it.
  void await_first(const std::function<void()>& work) const;
  /// Whether each rank has a part of the trainer's state, so that digests, saves and resumes are calls of all ranks; and whether each has a
  /// part of the weights, so that predictions are, too (scaletrain/trainer.h).
  bool shares_state(st_trainer* trainer) const;
  bool shares_weights(st_trainer* trainer) const;
  /// Ends the other ranks with this reason.
  void end(const std::string& reason) const noexcept;

 private:
  Communicator communicator_;
  int32_t rank_ = 0, size_ = 1;
  double deadline_ = 0;
};

/// Whether SCALETRAIN_DEBUG, a comma-separated list, contains "ranks": then each rank prints the library's log on stderr.
bool is_debugging_ranks();

}  // namespace cli
