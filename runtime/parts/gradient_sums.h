// Reduce-scatters the gradients of all ranks into each rank's shards (ir/cuts.h), bucket by bucket, for a ShardedOptimizer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/host_view.h"
#include "base/memory_source.h"
#include "ir/cuts.h"
#include "parts/gradient_bucket.h"

namespace st {

/// The Communicator sums in rank order, and micro-batches in their order; results do not depend on the buckets. All ranks give the same
/// gradients in the same order. One call at a time.
class GradientSums {
 public:
  struct Gradient {
    std::string_view name;  // borrowed
    int64_t elements = 0;
    const Cuts* cuts = nullptr;  // borrowed; null: the gradient is ignored
    void* own = nullptr;         // receives the sums of this rank's shard, f32 (f64 for f64), unless in_place
  };
  /// The queue of `how` runs the collectives that give() starts. Its end waits for them.
  GradientSums(const GradientReduction& how, std::vector<Gradient> gradients, int64_t bucket_bytes, std::shared_ptr<MemorySource> memory);

  /// Takes one gradient of a micro-batch: copies it and reduces it later with others. Throws invalid_argument if its type differs from the
  /// one in earlier micro-batches of this step, and what WorkQueue::post() throws; the gradient has not been taken then.
  void give(size_t gradient, const HostView& view);
  /// Takes all gradients of a micro-batch and reduces them now, without a copy.
  void give_all(std::span<const HostView> gradients);
  /// Throws wrong_state with the gradients that the step begun by give() still lacks.
  void require_all_given() const;
  bool has_begun() const { return has_begun_; }
  /// The type in which the gradient was given in this step.
  DType dtype(size_t gradient) const { return given_[gradient].dtype; }
  /// Waits until all gradients are reduced, rounds the sums (or means) to the gradients' type and starts the next step.
  void finish();

 private:
  struct Given {
    DType dtype = DType::f32;
    int64_t times = 0;
  };
  struct Bucket {
    explicit Bucket(GradientReduction& how) : exchange(how) {}

    Memory room;  // staging buffer for copies
    GradientBucket exchange;
  };

  bool fits(const Bucket& bucket, size_t gradient, DType dtype, int64_t room) const {
    return bucket.exchange.fits(dtype, given_[gradient].times > 0, bytes(gradient, dtype), room);
  }
  void add(Bucket& bucket, size_t gradient, DType dtype, void* data);
  void require_same_type(size_t gradient, DType dtype) const;
  void flush();
  void try_flush();
  void await();
  int64_t bytes(size_t gradient, DType dtype) const { return gradients_[gradient].elements * bytes_of(dtype); }

  GradientReduction how_;
  std::vector<Gradient> gradients_;
  int64_t bucket_bytes_;
  std::shared_ptr<MemorySource> memory_;
  std::vector<Given> given_;
  bool has_begun_ = false;
  size_t open_ = 0;  // the bucket that is filled while the other one is reduced
  std::array<Bucket, 2> buckets_;
};

}  // namespace st
