#include "parts/gemm_plan.h"

#include "base/os.h"

namespace st {

PackedMatrix::PackedMatrix(GemmPlan& plan, const void* b, std::shared_ptr<MemorySource> memory)
    : kernels_(&plan.kernels_),
      packing_(packing_of(plan.choice_.problem, plan.choice_.schedule)),
      memory_(plan.choice_.packed_bytes, std::move(memory)) {
  repack(plan, b);
}

void PackedMatrix::repack(GemmPlan& plan, const void* b) {
  kernels_->pack(plan.choice_.problem, plan.choice_.schedule, b, memory_.data(), *plan.workers_);
}

GemmPlan::GemmPlan(const GemmKernels& kernels, const GemmChoice& choice, std::unique_ptr<Workers> workers,
                   const std::shared_ptr<MemorySource>& memory)
    : kernels_(kernels), choice_(choice), workers_(std::move(workers)), scratch_(choice.scratch_bytes, memory) {}

void GemmPlan::run(const GemmOperands& operands, float alpha, float beta) {
  GemmProblem problem = choice_.problem;
  problem.alpha = alpha;
  problem.beta = beta;
  problem.bias = operands.bias != nullptr;
  // Without a product: a short one that threads would share out is done by one, whose scratch there is room for.
  Workers& workers = alpha == 0 ? alone_ : *workers_;
  if (alpha == 0) problem.k = 0;
  TileSchedule schedule = choice_.schedule;
  if (sums_apart(as_run(problem), schedule)) schedule.order = LoopOrder::n_m_k;  // a beta that the plan did not know of
  const std::span<std::byte> scratch{scratch_.data(), static_cast<size_t>(scratch_.size())};
  // To look at the clock takes as long as a product of 16 cubed: of small ones the first run is timed, and then one in 64.
  constexpr double kSmall = 1 << 20;
  constexpr uint32_t kOneIn = 64;
  const double work = 2.0 * static_cast<double>(problem.m * problem.n) * static_cast<double>(problem.k * problem.batch);
  if (work == 0 || (work < kSmall && runs_++ % kOneIn != 0)) return kernels_.run(problem, schedule, operands, scratch, workers);
  const double begin = os::seconds();
  kernels_.run(problem, schedule, operands, scratch, workers);
  const double seconds = os::seconds() - begin;
  if (seconds > 0) last_rate_ = work / seconds;
}

bool GemmPlan::fits(const PackedMatrix& packed) const {
  return &packed.kernels() == &kernels_ && packed.packing() == packing_of(choice_.problem, choice_.schedule);
}

}  // namespace st
