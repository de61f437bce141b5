// An optimizer for a host's parameters on several ranks. Each rank keeps the state of its own shards and updates them (ZeRO stages 1 and 2,
// Rajbhandari, Rasley, Ruwase and He 2020).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "parts/gradient_sums.h"
#include "parts/host_optimizer.h"
#include "parts/rank_report.h"

namespace st {

struct ShardOptions {
  int64_t stage = 1;             // 2: also shards the summed gradients, in the optimizer's own memory
  ReduceOp op = ReduceOp::mean;  // of the ranks' gradients; or sum
  int64_t bucket_bytes = 0;      // at least 1; does not change results
  bool shard_masters = false;    // if a parameter has a copy, a step gathers only the copy
};

/// Results are bitwise equal to GradientExchange with a HostOptimizer on every rank. All ranks make the same calls in the same order, one
/// at a time.
class ShardedOptimizer {
 public:
  /// json, parameters: as for HostOptimizer, equal on all ranks. Borrows the communicator and its queue. Throws like HostOptimizer;
  /// rank_mismatch on all ranks with the difference; the group stays usable.
  ShardedOptimizer(std::shared_ptr<Context> context, Communicator& ranks, std::string_view json, std::span<const HostView> parameters,
                   const ShardOptions& options, WorkQueue& queue);

  /// Stage 2: takes a gradient as soon as backward has made it; copies it. Given again before the step, it belongs to another micro-batch.
  /// Throws wrong_state at stage 1, invalid_argument for an index or a gradient that does not fit.
  void gradient_ready(int64_t i, const HostView& gradient);
  /// Like HostOptimizer::step, with the same report on all ranks. Stage 1 overwrites the gradients; at stage 2 `gradients` may be empty,
  /// for those given before. Throws rank_mismatch on all ranks, before anything is written, if ranks are at different steps or have
  /// different settings.
  HostOptimizer::Report step(std::span<const HostView> gradients, double scale = 1);

  /// Not collective. Throws wrong_state within a step, and while this rank does not hold whole parameters.
  void keep_copies(std::span<const HostView> copies);
  void set(std::string_view key, std::string_view json) { optimizer_.set(key, json); }

  /// Gathers the state of all ranks, named as in HostOptimizer, to one rank or to all (-1); empty on other ranks. Valid until the next
  /// call. Also makes parameters whole there of which steps gathered only the copies.
  std::span<const HostView> gather_state(int rank);
  /// Not collective: each rank takes its shards of `state`. Throws not_found and invalid_argument with the tensor, before anything is
  /// written.
  void load_state(std::span<const HostView> state);
  void forget_gathered();

  const HostOptimizer& optimizer() const { return optimizer_; }

 private:
  void require_same_run();
  void require_same_step(std::span<const HostView> gradients, double scale);
  void find_left();
  void gather_to(int rank, const Bucket& by_owner, std::string_view label);
  void make_room();

  std::shared_ptr<Context> context_;
  Communicator& ranks_;
  ShardOptions options_;
  HostOptimizer optimizer_;
  Bucket left_;     // parameters and copies that a step gathers, as bytes
  Bucket masters_;  // parameters that a step does not gather, as bytes
  bool has_masters_ = false;
  bool are_masters_whole_ = true;    // on this rank
  std::vector<RankReport> reports_;  // by rank
  std::vector<uint8_t> types_;       // types of a step's gradients and copies
  std::vector<HostOptimizer::WholeState> whole_;
  Memory gathered_;
  std::vector<HostView> views_;
  GradientSums sums_;  // last member: its end waits for operations that use the members above
};

}  // namespace st
