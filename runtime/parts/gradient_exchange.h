// All-reduces the gradients of a host's own backward, bucket by bucket while backward runs.
//
// Gradients are registered in forward order; backward makes them in roughly the reverse order, so the last ones form the first bucket. A
// bucket is reduced when all its gradients, and all earlier buckets, are ready: in the same order on all ranks, whatever the order in which
// a rank's backward makes them.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/work_queue.h"
#include "base/workers.h"
#include "comm/communicator.h"
#include "parts/gradient_bucket.h"

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

/// Results do not depend on the buckets. One call at a time; a step allocates nothing.
class GradientExchange {
 public:
  /// op: sum or mean. Borrows the communicator, the gradients' memory, and the queue, which runs the collectives. Its end waits for them.
  GradientExchange(Communicator& ranks, std::vector<ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes, WorkQueue& queue);

  /// Backward has made this gradient; its memory must not be touched until synchronize(). Throws invalid_argument for an unknown gradient,
  /// wrong_state for one that was ready before in this step, and what WorkQueue::post() throws: then the gradient is ready, and
  /// synchronize() posts again.
  void ready(int64_t gradient);
  /// Waits until all gradients are reduced; then the next step begins. Throws wrong_state with the gradients that backward has not made,
  /// without changing the step, and what a collective threw.
  void synchronize();
  /// While on, nothing is reduced: ready() and synchronize() do nothing. Throws wrong_state within a step.
  void set_local(bool on);

 private:
  struct Bucket {
    explicit Bucket(GradientReduction& how) : exchange(how) {}

    std::vector<size_t> gradients;
    std::string label;
    int64_t elements = 0, bytes = 0, missing = 0;  // missing: gradients that backward has not made yet
    GradientBucket exchange;
  };

  void fill_buckets(int64_t bucket_bytes);
  void share_out(Bucket& bucket) const;
  void post_full();

  std::vector<ExchangedGradient> gradients_;
  Workers workers_{1};  // the thread that runs a bucket
  GradientReduction how_;
  std::vector<Bucket*> bucket_of_;  // by gradient
  std::vector<bool> is_ready_;
  bool is_local_ = false, has_begun_ = false;
  std::list<Bucket> buckets_;
  std::list<Bucket>::iterator next_;
};

}  // namespace st
