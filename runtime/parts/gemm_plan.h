// A product by itself, over the host's arrays: a schedule, the scratch memory it needs and the threads it runs on, made once. A run
// allocates nothing.
#pragma once

#include <memory>

#include "base/memory_source.h"
#include "base/workers.h"
#include "parts/gemm_choice.h"

namespace st {

class GemmPlan;

/// All of B laid out for the micro-kernels of one plan, and of every other that packs alike. One call at a time.
class PackedMatrix {
 public:
  PackedMatrix(GemmPlan& plan, const void* b, std::shared_ptr<MemorySource> memory);
  /// Another B of the same layout, in place.
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
  double last_rate() const { return last_rate_; }  // flop/s of the last run that was timed; 0: none yet

  /// operands.packed_b: of fits(). With alpha 0 neither A nor B is read, with beta 0 C is not.
  void run(const GemmOperands& operands, float alpha, float beta);
  bool fits(const PackedMatrix& packed) const;

 private:
  friend class PackedMatrix;

  void run_by_tasks(const GemmOperands& operands);
  /// `product` of so many operations, and now and then its rate.
  template <class Product>
  void timed(double work, const Product& product);

  const GemmKernels& kernels_;
  GemmChoice choice_;
  GemmProblem problem_;  // the choice's, with the alpha and beta of the run
  SmallProduct small_;   // null: by tasks
  double work_;
  std::unique_ptr<Workers> workers_;
  Workers alone_{1};
  Memory scratch_;
  double last_rate_ = 0;
  uint32_t runs_ = 0;
};

}  // namespace st
