#include "product_checks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "gemm/candidates.h"
#include "guarded_memory.h"
#include "parts/gemm_choice.h"
#include "product_values.h"
#include "trial_journal.h"

namespace st::fuzz {
namespace {

/// The seed's product from its first run, with which every other run is compared.
struct First {
  ProductProblem product;
  TileSchedule wish;
  Way way;
  Written written;
};

std::string text_of(const Way& way) {
  return text(st::text_of(way.schedule), way.scratch >= 0 ? " of a plan, " : ", ", way.threads, " threads");
}

/// The schedule for the requested tiles, or nullopt if they are refused.
std::optional<TileSchedule> schedule_of(const CpuSet& set, const GemmProblem& problem, const TileSchedule& wish) {
  try {
    return set.gemm->schedule(problem, wish);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void expect_equal(const ProductTrial& trial, std::string_view what, const Written& want, const Written& got, const GemmProblem& p) {
  const auto expect = [&](const char* part, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    if (a.size() != b.size()) return trial.finding(text(what, ": ", part, " has ", b.size(), " elements, not ", a.size()));
    const auto same = [&](uint32_t x, uint32_t y) {  // which NaN it is may depend on the order of operands
      return x == y || (std::isnan(value_of(x, p.c_type)) && std::isnan(value_of(y, p.c_type)));
    };
    const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), same);
    if (x == a.end()) return;
    const int64_t at = x - a.begin(), width = std::max<int64_t>(p.n, 1);
    trial.finding(text("other bits of ", part, ", ", what, ": row ", at / width, " column ", at % width, " is ", value_of(*y, p.c_type),
                       ", was ", value_of(*x, p.c_type)));
  };
  expect("C", want.c, got.c);
  expect("the pre-activation", want.pre_activation, got.pre_activation);
  expect("the column sums", want.column_sums, got.column_sums);
}

/// Runs the product in another way; the bits must equal `want`.
void check_way(ProductTrial& trial, std::string_view what, const ProductProblem& product, const Way& way, const Written& want) {
  journal().begin(text(text_of(product), " | ", what, ": ", text_of(way)));
  expect_equal(trial, what, want, trial.run(product, way), product.gemm);
}

void check_threads(ProductTrial& trial, const First& first) {
  Way way = first.way;
  way.threads = static_cast<int>(trial.draw.in(1, 4));
  way.scratch = -1;
  check_way(trial, "other threads", first.product, way, first.written);
}

/// A problem with another number of rows, for which B may be packed.
GemmProblem draw_other_rows(Draw& draw, const GemmProblem& problem) {
  GemmProblem other = problem;
  const bool turned = runs_transposed(problem);
  other.m = draw.chance(0.6) ? draw.in(1, 60) : draw_size(draw);
  other.a = {std::max<int64_t>(other.k, 1), 1};
  if (turned) other.c = {1, std::max<int64_t>(other.m, 2)};
  if (!turned && other.c.column == 1) other.c = {std::max<int64_t>(other.n, 1), 1};
  return other;
}

void check_packed(ProductTrial& trial, const First& first) {
  const GemmProblem& p = first.product.gemm;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  GemmProblem packs = p;
  TileSchedule schedule = first.way.schedule;
  if (trial.draw.chance(0.6) && (p.c.column == 1 || p.c.row == 1)) {
    const GemmProblem other = draw_other_rows(trial.draw, p);
    const auto others = other.m > 0 ? schedule_of(trial.set, other, first.wish) : std::nullopt;
    if (others && packing_of(other, *others) == packing_of(p, schedule)) packs = other, schedule = *others;
  }
  if (trial.draw.chance(0.5)) packs.beta = 0;
  const int64_t bytes = trial.set.gemm->packed_bytes(packs, schedule);
  if (bytes != trial.set.gemm->packed_bytes(p, first.way.schedule)) return trial.finding("equal packings differ in bytes");

  const std::string what = text("packed for ", packs.m, " rows in ", st::text_of(schedule));
  journal().begin(text(text_of(first.product), " | ", what));
  const Placing place = place_of_b(p);
  const GuardedMemory b(trial.draw, place.extent() * bytes_of(p.b_type), bytes_of(p.b_type));
  const float* next = first.product.contents.b.data();
  place.each([&](int64_t element) { put(b.data(), p.b_type, element, *next++); });
  const GuardedMemory packed(trial.draw, bytes, 64);
  trial.set.gemm->pack(packs, schedule, b.data(), packed.data(), workers_of(static_cast<int>(trial.draw.in(1, 4))));
  Way way = first.way;
  way.packed = packed.data();
  if (trial.draw.chance(0.5)) way.scratch = -1;
  check_way(trial, what, first.product, way, first.written);
}

/// One of the schedules that tuning would measure.
std::optional<TileSchedule> draw_candidate(ProductTrial& trial, const First& first, int threads) {
  const GemmProblem& p = first.product.gemm;
  MachineModel machine;
  machine.flops_per_cycle = 64;
  machine.lanes = 16;
  const auto all = gemm_candidates(*trial.set.gemm, p, first.wish, false, machine, threads, 12);
  for (const GemmCandidate& x : all)
    if (!is_candidate(*trial.set.gemm, p, first.wish, x.schedule)) trial.finding(text("no candidate: ", st::text_of(x.schedule)));
  if (all.empty()) return std::nullopt;
  return all[static_cast<size_t>(trial.draw.in(0, static_cast<int64_t>(all.size()) - 1))].schedule;
}

void check_tiles(ProductTrial& trial, const First& first) {
  Way way = first.way;
  way.scratch = -1;
  way.threads = static_cast<int>(trial.draw.in(1, 4));
  TileSchedule wish = draw_wish(trial.draw);
  wish.kc = way.schedule.kc;  // only the block size of K affects bits
  const auto tiles = trial.draw.chance(0.08) ? draw_candidate(trial, first, way.threads) : schedule_of(trial.set, first.product.gemm, wish);
  if (!tiles || tiles->kc != wish.kc) return;
  way.schedule = *tiles;
  check_way(trial, "other tiles", first.product, way, first.written);
}

/// Runs some of the rows alone: a row's bits do not depend on the others.
void check_rows(ProductTrial& trial, const First& first) {
  ProductProblem part = first.product;
  GemmProblem& p = part.gemm;
  if (p.m < 2 || p.batch != 1) return;
  const int64_t begin = trial.draw.in(0, p.m - 1), end = trial.draw.chance(0.4) ? begin + 1 : trial.draw.in(begin + 1, p.m);
  const auto cut = [&](auto& rows, int64_t width) {
    if (!rows.empty()) rows = std::decay_t<decltype(rows)>(rows.begin() + begin * width, rows.begin() + end * width);
  };
  Contents& x = part.contents;
  Written want = first.written;
  cut(x.a, p.k);
  for (std::vector<float>* like_c : {&x.c, &x.derivative, &x.residual}) cut(*like_c, p.n);
  cut(want.c, p.n);
  cut(want.pre_activation, p.n);
  want.column_sums.clear();
  part.stages.column_sums = false;
  p.m = end - begin;
  TileSchedule wish = trial.draw.chance(0.3) ? draw_wish(trial.draw) : TileSchedule{};
  wish.kc = first.way.schedule.kc;
  const auto schedule = schedule_of(trial.set, p, wish);
  if (!schedule || schedule->kc != wish.kc) return;
  check_way(trial, text("rows ", begin, " to ", end, " alone"), part, {*schedule, first.way.threads}, want);
}

void check_layout_of_c(ProductTrial& trial, const First& first) {
  ProductProblem other = first.product;
  GemmProblem& p = other.gemm;
  const Placing place = draw_place(trial.draw, place_of_c(p), 0.5, 0.3);
  p.c = {std::max<int64_t>(place.at.row, 1), std::max<int64_t>(place.at.column, 1)};
  p.c_batch = place.step;
  TileSchedule wish;
  wish.kc = first.way.schedule.kc;
  const auto schedule = schedule_of(trial.set, p, wish);
  if (!schedule || schedule->kc != wish.kc) return;
  check_way(trial, "another layout of C", other, {*schedule, first.way.threads}, first.written);
}

/// As a plan runs it, whose scratch was computed for another alpha, beta and bias (GemmPlan::run).
Way way_of_plan(ProductTrial& trial, ProductProblem& product, const TileSchedule& tiles, int threads) {
  GemmProblem planned = product.gemm;
  if (trial.draw.chance(0.7)) planned.alpha = 1, planned.beta = 0, planned.bias = trial.draw.chance(0.5);
  GemmWish wish{tiles, trial.draw.chance(0.3)};
  if (trial.draw.chance(0.5)) wish.max_scratch_bytes = trial.draw.in(1 << 10, 1 << 18);
  const GemmChoice choice = choose_gemm(*trial.set.gemm, planned, wish, threads);
  Way way{choice.schedule, threads, choice.scratch_bytes};
  GemmProblem& p = product.gemm;
  if (p.alpha == 0) {
    p.k = 0, way.threads = 1, way.without_product = true;
    product.contents.a.clear(), product.contents.b.clear();
  }
  if (sums_apart(as_run(p), way.schedule)) way.schedule.order = LoopOrder::n_m_k;
  return way;
}

bool is_told_to_callers(std::string_view message) {  // B cannot be in place, the scratch is too small, a size is not allowed
  for (const char* reason : {"place", "max_scratch", "allowed"})
    if (message.find(reason) != std::string_view::npos) return true;
  return false;
}

std::optional<Way> draw_way(ProductTrial& trial, ProductProblem& product, const TileSchedule& wish) {
  const auto threads = static_cast<int>(trial.draw.in(1, 4));
  try {
    if (trial.draw.chance(0.3)) return way_of_plan(trial, product, wish, threads);
    return Way{trial.set.gemm->schedule(product.gemm, wish), threads};
  } catch (const Error& error) {
    if (!is_told_to_callers(error.what())) trial.finding(text("throws ", error.what()));
    return std::nullopt;
  }
}

}  // namespace

bool play_product(const CpuSet& set, uint64_t seed) {
  ProductTrial trial(set, seed);
  Draw& draw = trial.draw;
  auto drawn = draw_product(draw, set.name.find("bf16") != std::string::npos);
  if (!drawn) return false;
  First first{std::move(*drawn), draw.chance(0.4) ? TileSchedule{} : draw_wish(draw), {}, {}};
  ProductProblem& product = first.product;
  journal().begin(text_of(product));
  const auto way = draw_way(trial, product, first.wish);
  if (!way) return false;
  first.way = *way;

  ProductProblem plain = product;
  plain.stages = {};
  journal().begin(text(text_of(plain), " | ", text_of(first.way)));
  first.written = trial.run(plain, first.way);
  check_values(trial, plain, first.written);
  if (product.stages.any()) {
    journal().begin(text(text_of(product), " | ", text_of(first.way)));
    Written finished = trial.run(product, first.way);
    const Written kept{{}, first.written.c, {}};
    if (product.stages.pre_activation) expect_equal(trial, "kept by the epilogue", kept, {{}, finished.pre_activation, {}}, product.gemm);
    check_epilogue(trial, product, first.written, finished);
    first.written = std::move(finished);
  }
  if (first.way.without_product) return true;
  if (draw.chance(0.6)) check_threads(trial, first);
  if (draw.chance(0.6)) check_packed(trial, first);
  if (draw.chance(0.7)) check_tiles(trial, first);
  if (draw.chance(0.5)) check_rows(trial, first);
  if (draw.chance(0.15)) check_layout_of_c(trial, first);
  return true;
}

}  // namespace st::fuzz
