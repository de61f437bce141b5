// What ranks do together in a plan: its nodes of kind exchange, over a communicator.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "ir/program.h"

namespace st {

/// How many ranks, the first ones, have rows: in the round of micro-batches that runs, and in any round of the step.
struct Contributors {
  int in_round = 1, in_step = 1;
};

/// One node, with everything resolved: running it allocates nothing.
class PlannedExchange {
 public:
  /// `call`: the node's operands, whose memory stays. Borrows the communicator.
  PlannedExchange(const Program& program, const Node& node, const Call& call, Communicator& ranks);

  Op op() const { return op_; }
  bool is_once_a_step() const { return is_once_a_step_; }
  /// Throws what the communicator throws.
  void run(const Contributors& contributors);

  uint64_t queued_as = 0;  // the queue's (exchange_queue.h), of its last run

 private:
  void sum_terms(int contributors);
  void place_own_pieces();
  void place_squares();

  Communicator& ranks_;
  Op op_;
  bool adds_ = false, is_once_a_step_ = false;
  std::string label_;  // a gradient or parameter of it, and how many there are
  DType dtype_ = DType::f32;
  std::vector<std::vector<Communicator::Piece>> parts_;  // by owner
  std::vector<Communicator::Pieces> views_;              // of them
  std::vector<Communicator::Piece> into_;
  std::vector<const double*> terms_;  // rank_sums: ours, where all ranks' are gathered, and where the sums go
  std::vector<double> gathered_;
  std::vector<double*> sums_;
  const double* squares_ = nullptr;  // gather_squares: this rank's
  std::span<const Operand> own_;     // all_gather: this rank's pieces, where they do not lie among the others'
};

}  // namespace st
