// A stand-alone product over the host's arrays: schedule, scratch memory and threads are made once; a run allocates nothing.
#pragma once

#include <memory>

#include "base/memory_source.h"
#include "base/workers.h"
#include "parts/gemm_choice.h"

namespace st {

class GemmPlan;

/// B packed for the micro-kernels of one plan, and of every other plan with the same packing. One call at a time.
class PackedMatrix {
 public:
  PackedMatrix(GemmPlan& plan, const void* b, std::shared_ptr<MemorySource> memory);
  /// Packs another B of the same layout in place.
  void repack(GemmPlan& plan, const void* b);

  const std::byte* data() const { return memory_.data(); }
  const BPacking& packing() const { return packing_; }
  const GemmKernels& kernels() const { return *kernels_; }

 private:
  const GemmKernels* kernels_;
  BPacking packing_;
  Memory memory_;
};

/// One call at a time.
class GemmPlan {
 public:
  /// Throws out_of_memory.
  GemmPlan(const GemmKernels& kernels, const GemmChoice& choice, std::unique_ptr<Workers> workers,
           const std::shared_ptr<MemorySource>& memory);

  const GemmChoice& choice() const { return choice_; }
  int threads() const { return workers_->threads(); }
  double last_rate() const { return last_rate_; }  // flop/s of the last timed run; 0: none yet

  /// operands.packed_b must satisfy fits(). Does not read A and B with alpha 0, nor C with beta 0.
  void run(const GemmOperands& operands, float alpha, float beta);
  bool fits(const PackedMatrix& packed) const;

 private:
  friend class PackedMatrix;

  void run_by_tasks(const GemmOperands& operands);
  /// Runs `product`, of `work` operations, and measures its rate now and then.
  template <class Product>
  void timed(double work, const Product& product);

  const GemmKernels& kernels_;
  GemmChoice choice_;
  GemmProblem problem_;  // the choice's, with the run's alpha and beta
  SmallProduct small_;   // null: runs by tasks
  double work_;
  std::unique_ptr<Workers> workers_;
  Workers alone_{1};
  Memory scratch_;
  double last_rate_ = 0;
  uint32_t runs_ = 0;
};

}  // namespace st
