#include "parts/gemm_plan.h"

#include "base/os/machine.h"

namespace st {

PackedMatrix::PackedMatrix(GemmPlan& plan, const void* b, std::shared_ptr<MemorySource> memory)
    : kernels_(&plan.kernels_),
      packing_(packing_of(plan.choice_.problem, plan.choice_.schedule)),
      memory_(plan.choice_.packed_bytes, std::move(memory), MemoryRole::packed) {
  repack(plan, b);
}

void PackedMatrix::repack(GemmPlan& plan, const void* b) {
  kernels_->pack(plan.choice_.problem, plan.choice_.schedule, b, memory_.data(), *plan.workers_);
}

GemmPlan::GemmPlan(const GemmKernels& kernels, const GemmChoice& choice, std::unique_ptr<Workers> workers,
                   const std::shared_ptr<MemorySource>& memory)
    : kernels_(kernels),
      choice_(choice),
      problem_(choice.problem),
      small_(kernels.small == nullptr ? nullptr : kernels.small(problem_, choice.schedule, workers->threads())),
      work_(2.0 * static_cast<double>(problem_.m * problem_.n) * static_cast<double>(problem_.k * problem_.batch)),
      workers_(std::move(workers)),
      scratch_(choice.scratch_bytes, memory, MemoryRole::workspace) {}

void GemmPlan::run(const GemmOperands& operands, float alpha, float beta) {
  problem_.alpha = alpha;
  problem_.beta = beta;
  problem_.bias = operands.bias != nullptr;
  if (small_ == nullptr || alpha == 0 || operands.epilogue != nullptr) return run_by_tasks(operands);
  timed(work_, [&] { small_(problem_, choice_.schedule, operands); });
}

void GemmPlan::run_by_tasks(const GemmOperands& operands) {
  GemmProblem problem = problem_;
  // Without a product: a short one that threads would share out is done by one, whose scratch there is room for.
  Workers& workers = problem.alpha == 0 ? alone_ : *workers_;
  if (problem.alpha == 0) problem.k = 0;
  TileSchedule schedule = choice_.schedule;
  if (sums_apart(as_run(problem), schedule)) schedule.order = LoopOrder::n_m_k;  // a beta that the plan did not know of
  const std::span<std::byte> scratch{scratch_.data(), static_cast<size_t>(scratch_.size())};
  timed(problem.k == 0 ? 0 : work_, [&] { kernels_.run(problem, schedule, operands, scratch, workers); });
}

template <class Product>
void GemmPlan::timed(double work, const Product& product) {
  // To look at the clock takes as long as a product of 16 cubed: of small ones the first run is timed, and then one in 64.
  constexpr double kSmall = 1 << 20;
  constexpr uint32_t kOneIn = 64;
  if (work == 0 || (work < kSmall && runs_++ % kOneIn != 0)) return product();
  const double begin = os::seconds();
  product();
  const double seconds = os::seconds() - begin;
  if (seconds > 0) last_rate_ = work / seconds;
}

bool GemmPlan::fits(const PackedMatrix& packed) const {
  return &packed.kernels() == &kernels_ && packed.packing() == packing_of(choice_.problem, choice_.schedule);
}

}  // namespace st
