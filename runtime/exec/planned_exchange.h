// Runs the collective nodes of a plan over a communicator.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "ir/program.h"

namespace st {

/// Number of ranks with rows, which are the first ones: in the current round of micro-batches, and in any round of the step.
struct Contributors {
  int in_round = 1, in_step = 1;
};

/// One collective node with everything resolved; running it allocates nothing.
class PlannedExchange {
 public:
  /// `call`: the node's operands, whose addresses must not change. Borrows the communicator.
  PlannedExchange(const Program& program, const Node& node, const Call& call, Communicator& ranks);

  Op op() const { return op_; }
  bool is_once_a_step() const { return is_once_a_step_; }
  /// Throws what the communicator throws.
  void run(const Contributors& contributors);

  uint64_t queued_as = 0;  // position of its last run in the queue (exchange_queue.h)

 private:
  void sum_terms(int contributors);
  void place_own_pieces();
  void place_squares();

  Communicator& ranks_;
  Op op_;
  bool adds_ = false, is_once_a_step_ = false;
  std::string label_;  // name of one of its gradients or parameters, and their number
  DType dtype_ = DType::f32;
  std::vector<std::vector<Communicator::Shard>> parts_;  // by owning rank
  std::vector<Communicator::Shards> views_;              // of parts_
  std::vector<Communicator::Shard> into_;
  std::vector<const double*> terms_;  // rank_sums: this rank's terms; gathered_: all ranks'; sums_: the results
  std::vector<double> gathered_;
  std::vector<double*> sums_;
  const double* squares_ = nullptr;  // gather_squares: this rank's
  std::span<const Operand> own_;     // all_gather: this rank's shards, if they are not in the gathered memory
};

}  // namespace st
