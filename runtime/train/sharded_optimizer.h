// An optimizer over a host's parameters on several ranks, each of which keeps the state of its own pieces alone and updates these (ZeRO,
// Rajbhandari, Rasley, Ruwase and He 2020, stages 1 and 2).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "train/gradient_sums.h"
#include "train/host_optimizer.h"

namespace st {

struct ShardOptions {
  int64_t stage = 1;               // 2: the sums of gradients are in pieces too, in memory of their own
  ReduceOp op = ReduceOp::mean;    // of the ranks' gradients; or sum
  int64_t bucket_bytes = 0;        // 1 or more; no bit depends on it
  bool masters_in_pieces = false;  // of a parameter with a copy a step gathers the copy alone
};

/// Leaves the bits of GradientExchange and a HostOptimizer on every rank. Calls are made by all ranks, in one order, one at a time.
class ShardedOptimizer {
 public:
  /// json, parameters: HostOptimizer's, alike on all ranks. Borrows the communicator. Throws what HostOptimizer does; rank_mismatch, on all
  /// ranks, with what differs, and the group is whole.
  ShardedOptimizer(std::shared_ptr<Context> context, Communicator& ranks, std::string_view json, std::span<const HostView> parameters,
                   const ShardOptions& options, GradientExchange::Post post);

  /// Stage 2: one that backward has made, copied. Given again before the step it is of another micro-batch. Throws wrong_state at stage 1,
  /// invalid_argument for what is no such gradient.
  void gradient_ready(int64_t i, const HostView& gradient);
  /// As HostOptimizer::step, the same report on all ranks. Stage 1 writes the gradients; of stage 2 they may be none: those that were given
  /// before. Throws rank_mismatch, on all ranks, where they are at other steps or have other settings, before anything is written.
  HostOptimizer::Report step(std::span<const HostView> gradients, double scale = 1);

  /// By each rank for itself. Throws wrong_state within a step, and while parameters are not whole here.
  void keep_copies(std::span<const HostView> copies);
  void set(std::string_view key, std::string_view json) { optimizer_.set(key, json); }

  /// The state of all ranks, named as HostOptimizer's, on one rank, or on all (-1); elsewhere none. Valid until the next call.
  /// Parameters of which steps have gathered copies alone are whole there, too.
  std::span<const HostView> gather_state(int rank);
  /// By each rank for itself: its pieces of it. Throws not_found and invalid_argument that name the tensor, before anything is written.
  void load_state(std::span<const HostView> state);
  void forget_gathered();

  const HostOptimizer& optimizer() const { return optimizer_; }

 private:
  /// With what a rank begins a step.
  struct StepStart {
    int64_t step = 0;
    double lr = 0, scale = 0;
    uint64_t types = 0;
  };

  void require_same_run();
  void require_same_step(std::span<const HostView> gradients, double scale);
  void find_left();
  void gather_to(int rank, std::span<std::vector<Communicator::Piece>> by_owner, std::string_view label);
  void make_room();

  std::shared_ptr<Context> context_;
  Communicator& ranks_;
  ShardOptions options_;
  HostOptimizer optimizer_;
  // What a step leaves on this rank, by owner, as bytes; and the views of it.
  std::vector<std::vector<Communicator::Piece>> left_;
  std::vector<Communicator::Pieces> left_views_;
  std::vector<std::vector<Communicator::Piece>> masters_;  // likewise, of parameters that are not in it
  bool are_masters_whole_ = true;                          // on this rank
  std::vector<StepStart> starts_;                          // by rank
  std::vector<uint8_t> types_;                             // of a step's gradients and copies
  std::vector<HostOptimizer::WholeState> whole_;
  Memory gathered_;
  std::vector<HostView> views_;
  GradientSums sums_;  // the last: it waits for who uses the above
};

}  // namespace st
