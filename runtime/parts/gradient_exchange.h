// All-reduces the gradients of a host's own backward, bucket by bucket while backward runs.
//
// Gradients are registered in forward order; backward makes them in roughly the reverse order, so the last ones form the first bucket. A
// bucket is reduced when all its gradients, and all earlier buckets, are ready: in the same order on all ranks, whatever the order in which
// a rank's backward makes them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/pending.h"
#include "comm/communicator.h"

namespace st {

struct ExchangedGradient {
  std::string name;
  DType dtype = DType::f32;  // f32, f64, bf16 or f16
  int64_t elements = 0;
  void* data = nullptr;  // the host's, borrowed
};

/// Collective call. Throws the same rank_mismatch on all ranks, with the difference and both values, unless they exchange the same
/// gradients in the same way; the group stays usable.
void require_same_exchange(Communicator& ranks, std::span<const ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes);

/// Sums like Communicator: in rank order, in fp32 (fp64 for f64), rounded once; results do not depend on the buckets. One call at a time;
/// `post` decides who runs the collectives.
class GradientExchange {
 public:
  /// Runs `work` later, in the order of the calls, and then completes `pending`. Throws before anything has begun.
  using Post = std::function<void(std::function<void()> work, Pending& pending)>;
  /// op: sum or mean. Borrows the communicator and the gradients' memory for its life.
  GradientExchange(Communicator& ranks, std::vector<ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes, Post post);

  /// Backward has made this gradient; its memory must not be touched until synchronize(). Throws invalid_argument for an unknown gradient,
  /// wrong_state for one that was ready before in this step, and what Post throws: then the gradient is ready, and synchronize() posts
  /// again.
  void ready(int64_t gradient);
  /// Waits until all gradients are reduced; then the next step begins. Throws wrong_state with the gradients that backward has not made,
  /// without changing the step, and what a collective threw.
  void synchronize();
  /// While on, nothing is reduced: ready() and synchronize() do nothing. Throws wrong_state within a step.
  void set_local(bool on);

  size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    std::vector<size_t> gradients;
    DType dtype = DType::f32;
    std::string label;
    int64_t elements = 0, missing = 0;                    // missing: gradients that backward has not made yet
    std::vector<std::vector<Communicator::Shard>> owned;  // by owning rank, an even share each
    std::vector<Communicator::Shards> parts;              // views of owned
    Pending exchanged;
  };

  void fill_buckets(int64_t bucket_bytes);
  void share_out(Bucket& bucket) const;
  void post_full();
  void exchange(const Bucket& bucket);

  Communicator& ranks_;
  std::vector<ExchangedGradient> gradients_;
  ReduceOp op_;
  Post post_;
  std::vector<Bucket*> bucket_of_;  // by gradient
  std::vector<bool> is_ready_;
  std::vector<float> sums_;  // fp32 sums of this rank's elements of a 16-bit bucket
  bool is_local_ = false, has_begun_ = false;
  std::list<Bucket> buckets_;  // after the members above: their Pendings wait for operations that use those
  std::list<Bucket>::iterator next_;
};

}  // namespace st
