#include "gemm/candidates.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "gemm/tile_sizes.h"

namespace st {
namespace {

constexpr int64_t kTasksOfM[] = {0, 2, 4, 8, 12, 16, 24, 32}, kTasksOfN[] = {0, 2, 4, 8, 16, 24, 32};  // in tiles; 0: the default
constexpr int64_t kBlocks[] = {0, 512, 1024, 4096, 8192};
constexpr size_t kSameTask = 2;  // at most this many candidates may have the same task

/// The sizes to try for one dimension: only the caller's if set, else multiples of `unit`.
std::vector<int64_t> choices(int64_t wished, std::span<const int64_t> factors, int64_t unit, int64_t extent) {
  if (wished != 0) return {wished};
  std::vector<int64_t> sizes;
  for (const int64_t factor : factors) {
    sizes.push_back(factor * unit);
    if (factor * unit >= extent) break;  // larger ones have the same effect
  }
  return sizes;
}

/// Whether `made` keeps the default's value of every size that the caller set.
bool keeps(const TileSchedule& open, const TileSchedule& base, const TileSchedule& made) {
  const TileSizes wished = sizes_of(open), standard = sizes_of(base), sizes = sizes_of(made);
  for (size_t i = 0; i < 7; ++i)
    if (wished[i] != 0 && sizes[i] != standard[i]) return false;
  return made.kc == base.kc && (open.b == Packing::choose || made.b == base.b);
}

class Search {
 public:
  Search(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish, const MachineModel& machine, int threads)
      : kernels_(kernels),
        problem_(problem),
        run_(as_run(problem)),
        open_(as_wished(problem, wish)),  // the transposition is its own inverse
        base_(kernels.schedule(problem, wish)),
        machine_(machine),
        threads_(threads) {}

  const TileSchedule& base() const { return base_; }
  const TileSchedule& open() const { return open_; }
  const GemmProblem& as_it_runs() const { return run_; }

  /// `wanted`: for the product as_run().
  void consider(const TileSchedule& wanted) {
    try {
      const TileSchedule made = kernels_.schedule(problem_, as_wished(problem_, wanted));
      if (keeps(open_, base_, made)) found_.push_back(rated(made));
    } catch (const Error&) {  // B cannot be read in place
    }
  }

  std::vector<GemmCandidate> best(size_t most) {
    std::ranges::sort(found_, [](const auto& a, const auto& b) {
      return a.rate != b.rate ? a.rate > b.rate : sizes_of(a.schedule) < sizes_of(b.schedule);
    });
    std::vector<GemmCandidate> taken = {rated(base_)};
    for (const GemmCandidate& one : found_) {
      if (taken.size() >= most) break;
      const auto is_there = [&](const GemmCandidate& other) { return other.schedule == one.schedule; };
      const auto is_alike = [&](const GemmCandidate& other) {
        return other.schedule.mc == one.schedule.mc && other.schedule.nc == one.schedule.nc && other.schedule.b == one.schedule.b;
      };
      if (std::ranges::none_of(taken, is_there) && static_cast<size_t>(std::ranges::count_if(taken, is_alike)) < kSameTask)
        taken.push_back(one);
    }
    return taken;
  }

 private:
  GemmCandidate rated(const TileSchedule& schedule) const {
    const double seconds = predicted_seconds(run_, schedule, machine_, threads_);
    return {schedule, seconds > 0 ? flops_of(run_) / seconds : 0};
  }

  const GemmKernels& kernels_;
  const GemmProblem& problem_;
  GemmProblem run_;
  TileSchedule open_, base_;
  const MachineModel& machine_;
  int threads_;
  std::vector<GemmCandidate> found_;
};

}  // namespace

TileSchedule as_wished(const GemmProblem& problem, const TileSchedule& as_run) {
  return runs_transposed(problem) ? transposed(as_run) : as_run;
}

std::vector<GemmCandidate> gemm_candidates(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish,
                                           bool order_is_wished, const MachineModel& machine, int threads, size_t most) {
  Search search(kernels, problem, wish, machine, threads);
  const TileSchedule &open = search.open(), &base = search.base();
  const GemmProblem& p = search.as_it_runs();
  std::vector<LoopOrder> orders = {open.order};
  const int64_t pieces_of_k = (p.k + std::max<int64_t>(base.kc, 1) - 1) / std::max<int64_t>(base.kc, 1);
  if (!order_is_wished && pieces_of_k > 1) orders = {LoopOrder::n_k_m, LoopOrder::n_m_k};
  std::vector<Packing> packings = {open.b};
  if (open.b == Packing::choose && p.m <= rows_in_place(base.kr)) packings = {Packing::packed, Packing::in_place};
  const int64_t shorter[] = {0, base.mr - 2, base.mr - 4};
  for (const int64_t mr : choices(open.mr, shorter, 1, p.m))
    for (const int64_t mc : choices(open.mc, kTasksOfM, mr > 0 ? mr : base.mr, p.m))
      for (const int64_t nc : choices(open.nc, kTasksOfN, base.nr, p.n))
        for (const int64_t block_m : choices(open.block_m, kBlocks, 1, p.m))
          for (const int64_t block_n : choices(open.block_n, kBlocks, 1, p.n))
            for (const LoopOrder order : orders)
              for (const Packing packing : packings) {
                TileSchedule wanted = open;
                wanted.mr = std::max<int64_t>(mr, 0), wanted.mc = mc, wanted.nc = nc;
                wanted.block_m = block_m, wanted.block_n = block_n, wanted.order = order, wanted.b = packing;
                search.consider(wanted);
              }
  return search.best(most);
}

bool is_candidate(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish, const TileSchedule& schedule) {
  try {
    return sizes_of(kernels.schedule(problem, as_wished(problem, schedule))) == sizes_of(schedule) &&
           keeps(as_wished(problem, wish), kernels.schedule(problem, wish), schedule);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace st
