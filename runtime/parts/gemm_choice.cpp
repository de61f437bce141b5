#include "parts/gemm_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/os/cpu.h"
#include "gemm/machine_model.h"

namespace st {
namespace {

constexpr int64_t kLargestTile = int64_t{1} << 20, kMostRows = 64;

void check_size(const char* name, int64_t size, int64_t most) {
  check(size >= 0 && size <= most, "gemm: ", name, " must be 0 (choose) to ", most, ", got ", size);
}

void check_wish(const GemmWish& wish) {
  check_size("tile_m", wish.tiles.mc, kLargestTile);
  check_size("tile_n", wish.tiles.nc, kLargestTile);
  check_size("tile_k", wish.tiles.kc, kLargestTile);
  check_size("block_m", wish.tiles.block_m, kLargestTile);
  check_size("block_n", wish.tiles.block_n, kLargestTile);
  check_size("micro_m", wish.tiles.mr, kMostRows);
  check(wish.max_scratch_bytes >= 0, "gemm: max_scratch_bytes must be at least 0 (0: no limit), got ", wish.max_scratch_bytes);
}

bool differs(int64_t wished, int64_t chosen) { return wished != 0 && wished != chosen; }

/// Fits a requested schedule to the kernels. With beta, partial sums may need scratch: it is counted for every run, whatever its beta.
class Fitting {
 public:
  Fitting(const GemmKernels& kernels, const GemmProblem& problem, const GemmWish& wish, int threads)
      : kernels_(kernels), problem_(problem), wish_(wish), threads_(threads) {}

  GemmChoice made_of(const TileSchedule& tiles) const {
    GemmChoice choice{problem_, kernels_.schedule(problem_, tiles)};
    GemmProblem added = problem_;
    added.beta = 1;
    choice.scratch_bytes = kernels_.workspace(added, choice.schedule, threads_);
    choice.packed_bytes = kernels_.packed_bytes(problem_, choice.schedule);
    const TileSchedule made = choice.tiles();
    const TileSchedule& wished = wish_.tiles;
    choice.adjusted = differs(wished.mc, made.mc) || differs(wished.nc, made.nc) || differs(wished.kc, made.kc) ||
                      differs(wished.block_m, made.block_m) || differs(wished.block_n, made.block_n) || differs(wished.mr, made.mr);
    choice.source = wished == TileSchedule{} && !wish_.order_is_wished ? ScheduleSource::table : ScheduleSource::requested;
    return choice;
  }

  bool fits(const GemmChoice& choice) const { return choice.scratch_bytes <= wish_.scratch_budget(); }

  /// The largest that fits, or the smallest there is: blocks shrink before tiles, tiles before pieces of K. `wished`: only what is not.
  GemmChoice largest(bool wished) const {
    const TileSchedule& fixed = wish_.tiles;
    const auto is_free = [&](int64_t size) { return !wished || size == 0; };
    const bool turned = runs_transposed(problem_);
    TileSchedule tiles = fixed;
    GemmChoice choice = made_of(tiles);
    while (!fits(choice)) {
      const TileSchedule now = choice.tiles();
      // A matrix that is read in place has a tile of a fixed width.
      const bool m_free = is_free(fixed.mc) && (now.packs_b() || !turned) && now.mc > now.mr;
      const bool n_free = is_free(fixed.nc) && (now.packs_b() || turned) && now.nc > now.nr;
      const int64_t least_m = now.packs_b() || !turned ? now.mc : std::max(now.mc, kWidthsInPlace * now.mr),
                    least_n = now.packs_b() || turned ? now.nc : std::max(now.nc, kWidthsInPlace * now.nr);
      int64_t *block_m = is_free(fixed.block_m) && now.block_m > least_m ? &tiles.block_m : nullptr,
              *block_n = is_free(fixed.block_n) && now.block_n > least_n ? &tiles.block_n : nullptr;
      if (block_m != nullptr && (block_n == nullptr || now.block_m >= now.block_n)) {
        *block_m = std::max(now.mc, now.block_m / 2 / now.mc * now.mc);
      } else if (block_n != nullptr) {
        *block_n = std::max(now.nc, now.block_n / 2 / now.nc * now.nc);
      } else if (m_free && (now.mc >= now.nc || !n_free)) {
        tiles.mc = std::max(now.mr, now.mc / 2 / now.mr * now.mr);
        if (is_free(fixed.block_m)) tiles.block_m = tiles.mc;
      } else if (n_free) {
        tiles.nc = std::max(now.nr, now.nc / 2 / now.nr * now.nr);
        if (is_free(fixed.block_n)) tiles.block_n = tiles.nc;
      } else if (!wished && now.kc > now.kr) {
        tiles.kc = now.kc / 2;
      } else {
        break;
      }
      choice = made_of(tiles);
    }
    return choice;
  }

  [[noreturn]] void refuse(const GemmChoice& chosen) const {
    const TileSchedule asked = chosen.tiles();
    const GemmChoice best = largest(false);
    const TileSchedule tile = best.tiles();
    const int64_t budget = wish_.scratch_budget();
    const std::string limit = budget < wish_.memory_left ? text("max_scratch_bytes is ", budget)
                                                         : text("the context has ", budget, " left of memory_limit or of the machine");
    fail(Code::out_of_memory,
         text("gemm: tile ", asked.mc, "x", asked.nc, "x", asked.kc, " in blocks of ", asked.block_m, "x", asked.block_n, " needs ",
              chosen.scratch_bytes, " bytes of scratch, ", limit, "; ",
              fits(best) ? "the largest that fits is tile " : "even the smallest needs more: tile ", tile.mc, "x", tile.nc, "x", tile.kc,
              " in blocks of ", tile.block_m, "x", tile.block_n, " (", best.scratch_bytes, " bytes)"));
  }

 private:
  const GemmKernels& kernels_;
  const GemmProblem& problem_;
  const GemmWish& wish_;
  int threads_;
};

}  // namespace

GemmChoice choose_gemm(const GemmKernels& kernels, const GemmProblem& problem, const GemmWish& wish, int threads) {
  check_problem(problem, "gemm");
  check_layout(problem, "gemm");
  check_wish(wish);
  const Fitting fitting(kernels, problem, wish, threads);
  GemmChoice choice = fitting.largest(true);
  if (!fitting.fits(choice)) fitting.refuse(choice);
  return choice;
}

double predicted_rate(const GemmChoice& choice, std::string_view kernel_class, int threads) {
  const MachineModel machine = machine_model(os::cpu(), kernel_class, choice.problem, os::clock_rate());
  const double seconds = predicted_seconds(as_run(choice.problem), choice.schedule, machine, threads);
  return seconds > 0 ? flops_of(choice.problem) / seconds : 0;
}

}  // namespace st
