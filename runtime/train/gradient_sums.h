// Gradients of all ranks, summed in each rank's pieces of them (ir/cuts.h), bucket by bucket: the way into a ShardedOptimizer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory_source.h"
#include "base/workers.h"
#include "comm/communicator.h"
#include "ir/attrs.h"
#include "parts/gradient_exchange.h"
#include "train/host_view.h"

namespace st {

/// Sums are Communicator's, in the order of the ranks, and of micro-batches in theirs; no bit depends on the buckets. All ranks give the
/// same gradients in the same order. One call at a time.
class GradientSums {
 public:
  struct Gradient {
    std::string_view name;  // borrowed
    int64_t elements = 0;
    const Ints* cuts = nullptr;  // borrowed: where the ranks' pieces begin, and the end; null: nobody looks at it
    void* own = nullptr;         // the sums of this rank's piece, f32 (of f64: f64); not in place
  };
  struct Options {
    ReduceOp op = ReduceOp::mean;  // or sum
    int64_t bucket_bytes = 1;
    bool in_place = false;  // sums replace the gradients of this rank's pieces, in their type
  };
  /// Borrows communicator and workers. `post` does what give() begins.
  GradientSums(Communicator& ranks, Workers& workers, std::vector<Gradient> gradients, const Options& options,
               std::shared_ptr<MemorySource> memory, GradientExchange::Post post);

  /// A gradient of a micro-batch is there: copied, and exchanged later with what comes. Throws invalid_argument for another type than it
  /// had in this step's micro-batches before; and what Post does: then it has not been taken.
  void give(size_t gradient, const HostView& view);
  /// All of a micro-batch, exchanged now, where they lie.
  void give_all(std::span<const HostView> gradients);
  /// Of the step that give() began. Throws wrong_state that names those which it was not given.
  void require_all_given() const;
  bool has_begun() const { return has_begun_; }
  /// As it was given in this step.
  DType dtype(size_t gradient) const { return given_[gradient].dtype; }
  /// Until all is exchanged; then the sums, or means, are rounded to the gradients' type, and the next step begins.
  void finish();

 private:
  struct Given {
    DType dtype = DType::f32;
    int64_t times = 0;
  };
  struct Entry {
    size_t gradient;
    std::byte* data;
  };
  struct Bucket {
    DType dtype = DType::f32;
    bool adds = false;  // to sums that are there
    int64_t bytes = 0;
    std::vector<Entry> entries;
    // Of these, what is exchanged: this rank's elements by owner, and where the sums of its own go.
    std::vector<std::vector<Communicator::Piece>> owned;
    std::vector<Communicator::Pieces> parts;
    std::vector<Communicator::Piece> into;
    Memory room;  // of copies
    Pending exchanged;
  };

  bool fits(const Bucket& bucket, size_t gradient, DType dtype, int64_t most) const;
  void add(Bucket& bucket, size_t gradient, DType dtype, std::byte* data);
  void require_same_type(size_t gradient, DType dtype) const;
  void flush();
  void try_flush();
  void send(Bucket& full);
  void open_other();
  void await();
  Communicator::Piece piece(const Bucket& bucket, const Entry& entry, size_t rank) const;
  void share_out(Bucket& bucket);
  void exchange(Bucket& bucket);
  void settle_in_place(const Bucket& bucket);
  void settle(DType dtype, std::byte* sums, std::byte* to, int64_t n) const;
  int64_t bytes(size_t gradient, DType dtype) const { return gradients_[gradient].elements * bytes_of(dtype); }

  Communicator& ranks_;
  Workers& workers_;
  std::vector<Gradient> gradients_;
  Options options_;
  std::shared_ptr<MemorySource> memory_;
  GradientExchange::Post post_;
  std::vector<Given> given_;
  bool has_begun_ = false;
  std::vector<float> narrow_sums_;  // of 16 bits, in place
  size_t open_ = 0;                 // the bucket that is filled while the other one is exchanged
  std::array<Bucket, 2> buckets_;   // the last: their Pendings wait for whoever uses what stands above
};

}  // namespace st
