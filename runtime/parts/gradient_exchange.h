// Gradients of a host's own backward, exchanged between ranks bucket by bucket while backward goes on.
//
// They are registered in the order of the forward, and backward makes them in about the reverse one: so the last ones are the first bucket.
// A bucket is exchanged when all of its gradients are there, and the buckets before it: in one order on all ranks, whatever the order in
// which a rank's backward makes them.
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
  void* data = nullptr;  // the host's
};

/// Throws rank_mismatch where ranks do not exchange the same gradients in the same way, on each of them the same: which, and both sides.
/// To be called by all ranks; the group is whole afterwards.
void require_same_exchange(Communicator& ranks, std::span<const ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes);

/// Sums are made as Communicator's: in the order of the ranks, in fp32 (f64: fp64), rounded once; no bit depends on the buckets. One call
/// at a time; the exchange itself is done by whoever `post` gives it to.
class GradientExchange {
 public:
  /// Does the work later, each piece behind the one before it, and then tells the Pending. Throws before anything is begun.
  using Post = std::function<void(std::function<void()> work, Pending& pending)>;
  /// op: sum or mean. Borrows the communicator and the gradients' memory for life.
  GradientExchange(Communicator& ranks, std::vector<ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes, Post post);

  /// Backward has made it; from now on to synchronize() its memory is lent. Throws invalid_argument for one that is not there, wrong_state
  /// for one that has been told of in this step. What Post throws: it is ready all the same, and synchronize() posts again.
  void ready(int64_t gradient);
  /// Until all is exchanged: then the next step begins. Throws wrong_state that names those which backward has not made, and the step stays
  /// as it is; else what an exchange threw.
  void synchronize();
  /// While on, nothing is exchanged: ready() and synchronize() do nothing. Throws wrong_state within a step.
  void set_local(bool on);

  size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    std::vector<size_t> gradients;
    DType dtype = DType::f32;
    std::string label;
    int64_t elements = 0, missing = 0;                    // missing: that backward has not made yet
    std::vector<std::vector<Communicator::Piece>> owned;  // by owner, an even share each
    std::vector<Communicator::Pieces> parts;              // of them
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
  std::vector<float> sums_;  // of this rank's own elements of a bucket in 16 bits
  bool is_local_ = false, has_begun_ = false;
  std::list<Bucket> buckets_;  // the last: their Pendings wait for whoever uses what stands above
  std::list<Bucket>::iterator next_;
};

}  // namespace st
