// A bucket of a host's gradients: an item of a work queue, which reduces them over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/reduce_op.h"
#include "base/work_queue.h"
#include "base/workers.h"
#include "comm/bucket.h"

namespace st {

/// The settings that all buckets of one set of gradients share. All references are borrowed.
struct GradientReduction {
  Communicator& ranks;
  WorkQueue& queue;
  Workers& workers;
  ReduceOp op = ReduceOp::mean;         // or sum
  bool in_place = false;                // the results replace the elements that this rank owns, in the gradients' type
  bool gathers = false;                 // in place, and then each rank gets the results of all
  std::vector<float> narrow_sums = {};  // in place: fp32 sums of 16-bit gradients, of one bucket at a time

  /// Divides sums by the number of ranks, for a mean, and rounds them to `dtype`. The results go to `to`, as `dtype`; null: they stay where
  /// they are, in the type of the sums.
  void settle(DType dtype, std::byte* sums, std::byte* to, int64_t n) const;
};

/// Gradients of one type. Sums like Communicator: in rank order, in fp32 (fp64 for f64), so that results do not depend on the buckets.
/// Filled by the thread that posts it, between two runs. Borrows the gradients.
class GradientBucket final : public WorkQueue::Work {
 public:
  explicit GradientBucket(GradientReduction& how) : how_(how), memory_(how.ranks) {}
  ~GradientBucket() { how_.queue.finish(*this); }

  bool is_empty() const { return gradients_ == 0; }
  int64_t bytes() const { return bytes_; }
  /// Whether it is empty, or has room for such a gradient and holds others like it.
  bool fits(DType dtype, bool adds, int64_t bytes, int64_t room) const {
    return is_empty() || (dtype == dtype_ && adds == adds_ && bytes <= room - bytes_);
  }
  /// fits(). Rank r owns the elements [cut(r), cut(r + 1)) of `elements`.
  ///   adds   the sums are added onto those of earlier micro-batches
  ///   sums   receives the sums of this rank's elements, f32 (f64 for f64); not used in place
  ///   label  borrowed; names the bucket if it is the first gradient's
  /// Throws only std::bad_alloc, before the gradient is in the bucket.
  template <class Cut>
  void add(DType dtype, bool adds, void* data, int64_t elements, const Cut& cut, void* sums, std::string_view label) {
    const int own = how_.ranks.rank();
    begin(dtype, cut(own + 1) - cut(own));
    if (is_empty()) label_ = label;
    dtype_ = dtype;
    adds_ = adds;
    for (int rank = 0; rank < how_.ranks.size(); ++rank)
      if (const int64_t first = cut(rank), count = cut(rank + 1) - first; count > 0)
        memory_.add(rank, static_cast<std::byte*>(data) + first * bytes_of(dtype), count);
    if (const int64_t count = cut(own + 1) - cut(own); count > 0 && !how_.in_place) memory_.add_sum(sums, count);
    data_ = data;
    elements_ += elements;
    bytes_ += elements * bytes_of(dtype);
    ++gradients_;
  }
  void clear();

  /// Throws what WorkQueue::post() throws, before anything has begun.
  void post() { how_.queue.post(*this); }
  /// Waits for the last post(). Throws what its collectives threw.
  void wait() const { how_.queue.wait(*this); }
  void run() override;

 private:
  void begin(DType dtype, int64_t own_elements);
  void settle_in_place();

  GradientReduction& how_;
  Bucket memory_;
  DType dtype_ = DType::f32;
  bool adds_ = false;
  std::string_view label_;
  void* data_ = nullptr;  // of the last gradient
  int64_t gradients_ = 0, elements_ = 0, own_elements_ = 0, bytes_ = 0;
};

}  // namespace st
