// The reports that the ranks of a host's group exchange at each call of a step, and the check that they make the same step.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "parts/rank_times.h"

namespace st {

/// A rank's report when it begins a step, or goes on with one whose loss the host computes. Plain bytes.
struct RankReport {
  enum class Call : int64_t { step, forward, backward, apply, sharded_optimizer };
  enum class From : int64_t { any = -1, gradients, own_loss };  // of backward; any: what the stage with the outputs has
  static constexpr int64_t kFromData = -1;

  // Alike on all ranks.
  Call call = Call::step;
  From from = From::any;
  int64_t attempts = 0;  // steps attempted
  int64_t items = 0;     // taken from the data's stream
  int64_t update = 0;    // its number
  int64_t pairs = 0;     // micro-batches (forward and backward) of each rank; 0 where each may run another number
  double lr = 0, loss_scale = 1;

  // Each rank's own.
  int64_t rows = 0;          // that the caller gave; kFromData: the rank reads its own from the data
  int64_t lacks_copies = 0;  // 1: its working copies do not match its shards of the weights
  int64_t data_rank = 0;
  int64_t is_counted = 0;               // 1: it has the graph's outputs, and tells their loss for its tensor ranks
  double loss_sum = 0, loss_count = 0;  // of the micro-batches so far
  int64_t own_pairs = 0;
  /// With `from`: a hash of the gradients that the host gave, which tensor ranks must have in common. Of a sharded optimizer: of their
  /// types.
  uint64_t gradients = 0;
  RankTimes last_step = {};  // this rank's times of the previous step, if it made that step
};

/// Fills `reports`, by rank, from each rank's own. Collective call. Throws the same rank_mismatch on all ranks if what must be alike is
/// not: the first rank that differs from the first one that is counted (rank 0, if none is), both values, and the way out.
void exchange_reports(Communicator& ranks, const RankReport& own, std::span<RankReport> reports);

/// The first that is counted, by index; 0 if none is.
size_t first_counted(std::span<const RankReport> reports);

}  // namespace st
