// Tuning changes a product's speed but not its bits, keeps its time limit, and looks in the cache before it measures.
#include "parts/gemm_tuner.h"

#include <cstring>

#include "base/float16.h"
#include "base/os/cpu.h"
#include "base/os/machine.h"
#include "cpu_kernel.h"
#include "gemm/gemm_library.h"
#include "plain_problem.h"
#include "refusal.h"

namespace st {
namespace {

std::vector<GemmProblem> odd_problems() {
  const auto of = plain_problem;
  GemmProblem transposed_a = of(131, 97, 1501), transposed_b = of(37, 101, 1031), column_major = of(70, 333, 1100), batched = of(9, 33, 40),
              added = of(45, 77, 1700), biased = of(16, 120, 1030), half = of(33, 50, 2050);
  transposed_a.a = {1, 131}, transposed_b.b = {1, 1031}, column_major.c = {1, 70};
  batched.batch = 3, batched.a_batch = 360, batched.b_batch = 1320, batched.c_batch = 297;
  added.beta = 1, biased.bias = true, half.a_type = half.b_type = half.c_type = DType::bf16;
  return {of(257, 257, 257), of(1, 65, 900), of(4, 96, 900), of(2, 160, 900), of(8, 300, 1025), transposed_a,
          transposed_b,      column_major,   batched,        added,           biased,           half};
}

MachineModel model_for(const CpuSet& set, const GemmProblem& problem) { return machine_model(os::cpu(), set.name, problem, 3e9); }

/// Numbers as elements of this type. Not random bytes: some would be NaNs, whose payload the compiler chooses.
std::vector<std::byte> elements(DType type, int64_t n, uint64_t seed) {
  const auto values = random_floats(n, seed);
  std::vector<std::byte> bytes(static_cast<size_t>(n * bytes_of(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = bf16_of(values[i]);
    if (type == DType::bf16) {
      std::memcpy(bytes.data() + i * sizeof half, &half, sizeof half);
    } else {
      std::memcpy(bytes.data() + i * sizeof(float), &values[i], sizeof(float));
    }
  }
  return bytes;
}

std::vector<std::byte> product_of(const CpuSet& set, const GemmProblem& p, const TileSchedule& schedule, int threads) {
  const auto a = elements(p.a_type, p.batch * p.m * p.k, 1), b = elements(p.b_type, p.batch * p.k * p.n, 2),
             bias = elements(p.c_type, p.n, 3);
  auto out = elements(p.c_type, p.batch * p.m * p.n, 4);
  Workers workers(threads);
  GuardedScratch scratch(set.gemm->workspace(p, schedule, threads));
  set.gemm->run(p, schedule, {a.data(), b.data(), out.data(), p.bias ? bias.data() : nullptr}, scratch.bytes(), workers);
  EXPECT_TRUE(scratch.is_whole());
  return out;
}

TEST(GemmCandidates, AreOneOrMoreOfThePieceOfKAndTheBitsOfTheDefault) {
  for (const CpuSet& set : cpu_sets())
    for (const GemmProblem& p : odd_problems()) {
      const auto candidates = gemm_candidates(*set.gemm, p, {}, false, model_for(set, p), 2, 40);
      ASSERT_FALSE(candidates.empty());
      EXPECT_EQ(candidates[0].schedule, set.gemm->schedule(p, {}));
      EXPECT_GT(candidates.size(), 3U) << set.name << " " << p.m << "x" << p.n << "x" << p.k;
      const auto bits = product_of(set, p, candidates[0].schedule, 1);
      for (const GemmCandidate& one : candidates) {
        EXPECT_GT(one.rate, 0);
        EXPECT_EQ(one.schedule.kc, candidates[0].schedule.kc);
        EXPECT_TRUE(is_candidate(*set.gemm, p, {}, one.schedule)) << text_of(one.schedule);
        EXPECT_TRUE(product_of(set, p, one.schedule, 2) == bits) << set.name << " " << text_of(one.schedule);
      }
    }
}

TEST(GemmCandidates, KeepWhatWasWishedFor) {
  TileSchedule wish;
  wish.nc = 64, wish.kc = 300;
  for (const CpuSet& set : cpu_sets())
    for (const bool turned : {false, true}) {
      GemmProblem p = plain_problem(600, 500, 700);
      if (turned) p.c = {1, 600};
      const TileSchedule base = set.gemm->schedule(p, wish);
      const auto candidates = gemm_candidates(*set.gemm, p, wish, false, model_for(set, p), 1, 12);
      EXPECT_GT(candidates.size(), 3U);
      for (const GemmCandidate& one : candidates) {
        EXPECT_EQ(one.schedule.kc, base.kc);
        EXPECT_EQ(turned ? one.schedule.mc : one.schedule.nc, turned ? base.mc : base.nc) << set.name << " " << text_of(one.schedule);
      }
    }
}

TEST(MachineModel, KnowsWhatACoreDoesWithBf16) {
  const GemmProblem floats = plain_problem(64, 64, 64);
  GemmProblem halves = floats;
  halves.a_type = halves.b_type = DType::bf16;
  const auto peak = [](const char* vendor, const char* kernel_class, const GemmProblem& problem) {
    os::CpuIdentity cpu;
    cpu.vendor = vendor, cpu.family = 25;
    return machine_model(cpu, kernel_class, problem, 1).peak();
  };
  EXPECT_EQ(peak("GenuineIntel", "avx512", halves), peak("GenuineIntel", "avx512", floats)) << "widened";
  EXPECT_EQ(peak("GenuineIntel", "avx512_bf16", halves), peak("GenuineIntel", "avx512", floats) / 2);
  EXPECT_EQ(peak("AuthenticAMD", "avx512_bf16", halves), peak("AuthenticAMD", "avx512", floats) * 2);
  EXPECT_EQ(peak("GenuineIntel", "amx_bf16", floats), peak("GenuineIntel", "avx512", floats));
  EXPECT_EQ(peak("GenuineIntel", "amx_bf16", halves), peak("GenuineIntel", "avx512", floats) * 16);
}

TEST(GemmCandidates, ArePredictedSlowerWhereThePanelsOfATaskLeaveTheCache) {
  const CpuSet set = cpu_sets().back();
  const GemmProblem p = plain_problem(2048, 2048, 2048);
  MachineModel machine = model_for(set, p);
  TileSchedule small = set.gemm->schedule(p, {}), large = small;
  large.mc = small.mr * 140;
  machine.caches.l2 = 1 << 20;
  EXPECT_LT(predicted_seconds(p, small, machine, 1), predicted_seconds(p, large, machine, 1));
  machine.caches.l2 = 64 << 20;
  EXPECT_GT(predicted_seconds(p, small, machine, 1), predicted_seconds(p, large, machine, 1));
  EXPECT_GT(predicted_seconds(p, small, machine, 1), predicted_seconds(p, small, machine, 2));
  EXPECT_GE(predicted_seconds(p, small, machine, 1), flops_of(p) / machine.peak()) << "nothing is faster than the peak";
}

struct Tuning {
  explicit Tuning(const CpuSet& kernels, int64_t there = int64_t{1} << 30) : set(kernels), available(there) {}
  TunedTiles operator()(const GemmProblem& p, double seconds, const GemmWish& wish = {}, const GemmContest& contest = {}) {
    GemmTuner tuner({*set.gemm, set.name, cache, std::make_shared<MemorySource>(), [this] { return available; }, log, clock});
    return tuner.tune(p, wish, workers, seconds, contest);
  }
  std::string key(const GemmProblem& p) const { return tuning_key(os::cpu(), set.name, p, {}, false, workers.threads()); }

  CpuSet set;
  int64_t available;
  std::function<double()> clock = os::seconds;
  std::vector<std::string> told;
  Logger log{[](void* user, int32_t, const char*, const char* line) { static_cast<std::vector<std::string>*>(user)->emplace_back(line); },
             &told};
  TuningCache cache{"", {}};
  Workers workers{2};
};

/// This machine's best kernels with a replaced run().
GemmKernels kernels_that(decltype(GemmKernels::run) run) {
  GemmKernels kernels = *cpu_sets().back().gemm;
  kernels.run = run;
  return kernels;
}

void must_not_run(const GemmProblem&, const TileSchedule&, const GemmOperands&, std::span<std::byte>, Workers&) {
  ADD_FAILURE() << "nothing is to be measured";
}

TEST(GemmTuner, KeepsAWinnerOfTheSameBitsAndAsksTheCacheNextTime) {
  Tuning tuning(cpu_sets().back());
  const GemmProblem p = plain_problem(150, 200, 1300);
  const TileSchedule standard = tuning.set.gemm->schedule(p, {});
  const TunedTiles first = tuning(p, 2);
  const auto known = tuning.cache.find(tuning.key(p));
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->schedule.kc, standard.kc);
  EXPECT_GE(known->rate, known->standard_rate);
  EXPECT_EQ(first.source, known->schedule == standard ? ScheduleSource::table : ScheduleSource::tuned);
  const GemmKernels idle = kernels_that(must_not_run);
  tuning.set.gemm = &idle;
  const TunedTiles second = tuning(p, 2);
  EXPECT_EQ(second.source, known->schedule == standard ? ScheduleSource::table : ScheduleSource::cache);
  EXPECT_EQ(second.tiles, first.tiles);
}

bool is_standard(const GemmProblem& p, const TileSchedule& schedule) { return schedule == cpu_sets().back().gemm->schedule(p, {}); }

/// A clock that only kernels move, by the time that they pretend to take.
double fake_seconds = 0;
double fake_clock() { return fake_seconds; }
void take(int milliseconds) { fake_seconds += milliseconds * 1e-3; }

/// Computes nothing but takes time: ten times as long for the default's tiles.
void run_default_slowly(const GemmProblem& p, const TileSchedule& schedule, const GemmOperands&, std::span<std::byte>, Workers&) {
  take(is_standard(p, schedule) ? 20 : 2);
}

TEST(GemmTuner, ReplacesADefaultThatIsPoor) {
  const GemmKernels poor = kernels_that(run_default_slowly);
  Tuning tuning({cpu_sets().back().name, nullptr, &poor});
  tuning.clock = fake_clock;
  const GemmProblem p = plain_problem(200, 210, 900);
  const TunedTiles found = tuning(p, 3);
  EXPECT_EQ(found.source, ScheduleSource::tuned);
  const auto known = tuning.cache.find(tuning.key(p));
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(as_wished(p, known->schedule), found.tiles);
  EXPECT_GT(known->rate, known->standard_rate);
  EXPECT_EQ(tuning(p, 1e-9).source, ScheduleSource::cache);
}

/// A race in fake seconds: the default takes 0.01 s, one candidate a share of that, all others 1.1 times that.
struct Course {
  double usual, slow;  // the candidate's share in eight rounds of ten and in the other two
  double now = 0;
  TileSchedule candidate;
  int samples = 0;
} course;

void run_course(const GemmProblem& p, const TileSchedule& schedule, const GemmOperands&, std::span<std::byte>, Workers&) {
  double share = 1.1;
  if (is_standard(p, schedule)) {
    share = 1;
  } else if (course.samples == 0 || schedule == course.candidate) {
    course.candidate = schedule;
    share = course.samples++ % 5 == 4 ? course.slow : course.usual;
  }
  course.now += 0.01 * share;
}

TEST(GemmTuner, ReplacesTheDefaultOnlyByWhatIsFasterBeyondTheSpread) {
  const struct {
    double usual, slow;
    bool wins;
  } cases[] = {
      {1 / 1.03, 1 / 1.03, true},    // 3 % faster in every round
      {1 / 1.03, 1.02, false},       // faster in the median, but slower in two of ten
      {1 / 1.03, 1 / 1.001, true},   // barely faster in two of ten
      {1 / 1.005, 1 / 1.005, false}  // faster in every round, but not by 1 %
  };
  const GemmKernels raced = kernels_that(run_course);
  for (const auto& [usual, slow, wins] : cases) {
    course = {.usual = usual, .slow = slow, .candidate = {}};
    Tuning tuning({cpu_sets().back().name, nullptr, &raced});
    tuning.clock = [] { return course.now; };
    const GemmProblem p = plain_problem(200, 210, 900);
    const TunedTiles found = tuning(p, 30);
    EXPECT_EQ(found.source, wins ? ScheduleSource::tuned : ScheduleSource::table) << usual << ", " << slow;
    EXPECT_GE(course.samples, 15) << "it was not in the final";
    const auto known = tuning.cache.find(tuning.key(p));
    ASSERT_TRUE(known.has_value());
    EXPECT_EQ(known->schedule, wins ? course.candidate : tuning.set.gemm->schedule(p, {})) << usual << ", " << slow;
  }
}

TEST(GemmTuner, TakesFromTheCacheOnlyWhatTheKernelsRunAsItStandsWithTheSameBits) {
  Tuning tuning(cpu_sets().back());
  const GemmProblem p = plain_problem(600, 600, 900);
  const TileSchedule standard = tuning.set.gemm->schedule(p, {});
  TileSchedule other = standard;
  other.mc = standard.mr * 3, other.block_m = (600 + other.mc - 1) / other.mc * other.mc;
  tuning.cache.keep(tuning.key(p), {other, 2e9, 1e9});
  EXPECT_EQ(tuning(p, 1e-9).source, ScheduleSource::cache);
  TileSchedule other_k = other, ragged = other, absurd = other;
  other_k.kc = 300, ragged.mc += 1, absurd.nc = 0;
  for (const TileSchedule& wrong : {other_k, ragged, absurd}) {
    tuning.cache.keep(tuning.key(p), {wrong, 2e9, 1e9});
    EXPECT_EQ(tuning(p, 1e-9).source, ScheduleSource::table) << text_of(wrong);
  }
}

/// Computes nothing but takes time: ten times as long for all tiles except the default's.
void run_slowly(const GemmProblem& p, const TileSchedule& schedule, const GemmOperands&, std::span<std::byte>, Workers&) {
  take(is_standard(p, schedule) ? 6 : 60);
}

TEST(GemmTuner, KeepsToItsTime) {
  const GemmKernels slow = kernels_that(run_slowly);
  for (const double seconds : {0.1, 0.5}) {
    Tuning tuning({cpu_sets().back().name, nullptr, &slow});
    tuning.clock = fake_clock;
    const double begin = fake_clock();
    EXPECT_EQ(tuning(plain_problem(300, 300, 300), seconds).source, ScheduleSource::table);
    EXPECT_LE(fake_clock() - begin, seconds + 0.06) << "only the last sample may be late";
  }
}

TEST(GemmTuner, SaysWhyItLeavesAProductAsItIs) {
  const GemmKernels idle = kernels_that(must_not_run);
  Tuning large({cpu_sets().back().name, nullptr, &idle});
  EXPECT_EQ(large(plain_problem(4096, 4096, 4096), 0.05).source, ScheduleSource::table);
  ASSERT_EQ(large.told.size(), 1U);
  EXPECT_TRUE(says(large.told[0], {"the limit is 0.05 s"}));
  Tuning poor(cpu_sets().back(), 1000);
  EXPECT_EQ(poor(plain_problem(100, 100, 100), 5).source, ScheduleSource::table);
  ASSERT_EQ(poor.told.size(), 1U);
  EXPECT_TRUE(says(poor.told[0], {"more than is available"}));
  EXPECT_EQ(poor(plain_problem(0, 5, 5), 5).source, ScheduleSource::table);
}

GemmLibrary library_of(const char* kind) { return {"openblas", text(ST_LIBRARIES "/lib", kind, "_blas.so")}; }

/// Computes nothing but takes time: a tenth with a library.
void run_own_slowly(const GemmProblem&, const TileSchedule& schedule, const GemmOperands&, std::span<std::byte>, Workers&) {
  take(schedule.library == nullptr ? 20 : 2);
}

TEST(GemmTuner, LeavesAProductToALibraryThatIsFasterAndKeepsThat) {
  const GemmKernels slow = kernels_that(run_own_slowly);
  Tuning tuning({cpu_sets().back().name, nullptr, &slow});
  tuning.clock = fake_clock;
  const GemmLibrary able = library_of("able");
  const GemmProblem p = plain_problem(200, 210, 900);
  const GemmContest contest{.tiles = false, .libraries = {&able}};
  const TunedTiles found = tuning(p, 3, {}, contest);
  EXPECT_EQ(found.source, ScheduleSource::tuned);
  EXPECT_EQ(found.tiles.library, &able);
  const TunedTiles known = tuning(p, 1e-9, {}, contest);
  EXPECT_EQ(known.source, ScheduleSource::cache);
  EXPECT_EQ(known.tiles, found.tiles);
  EXPECT_EQ(tuning(p, 1e-9).tiles.library, nullptr) << "nobody lets it compete";
  EXPECT_EQ(tuning(p, 1e-9, {}, {.tiles = false}).source, ScheduleSource::table) << "nothing competes";

  GemmProblem half = p;
  half.a_type = half.b_type = DType::bf16;
  EXPECT_EQ(tuning(half, 3, {}, contest).source, ScheduleSource::table) << "it has no such product";
}

TEST(GemmTuner, TakesNoLibraryFromTheCacheButThoseThatCompeteNow) {
  Tuning tuning(cpu_sets().back());
  const GemmLibrary able = library_of("able");
  const GemmProblem p = plain_problem(300, 301, 302);
  const GemmContest contest{.tiles = false, .libraries = {&able}};
  const TileSchedule standard = tuning.set.gemm->schedule(p, {});
  const auto key = [&](const GemmContest& of) { return tuning_key(os::cpu(), tuning.set.name, p, {}, false, 2, of); };
  EXPECT_NE(key(contest), key({}));
  EXPECT_NE(key({.tiles = true, .libraries = {&able}}), key(contest));
  EXPECT_NE(key(contest).find(able.identity()), std::string::npos) << "another version is another key";
  tuning.cache.keep(key(contest), {standard, 2e9, 1e9, able.identity()});
  EXPECT_EQ(tuning(p, 1e-9, {}, contest).tiles.library, &able);
  for (const char* other : {"openblas-0.0.2-Three_Loops_1", "mkl-1999.2.3"}) {
    tuning.cache.keep(key(contest), {standard, 2e9, 1e9, other});
    EXPECT_EQ(tuning(p, 1e-9, {}, contest).source, ScheduleSource::table) << other;
  }
}

/// Our own kernels slowed down, so that a library seems faster.
void run_slower_than_libraries(const GemmProblem& p, const TileSchedule& schedule, const GemmOperands& x, std::span<std::byte> workspace,
                               Workers& workers) {
  cpu_sets().back().gemm->run(p, schedule, x, workspace, workers);
  take(schedule.library == nullptr ? 40 : 1);
}

TEST(GemmTuner, LeavesOutALibraryThatComputesWronglyAndWarns) {
  const GemmKernels slow = kernels_that(run_slower_than_libraries);
  const GemmLibrary able = library_of("able"), lossy = library_of("lossy");
  const GemmProblem p = plain_problem(60, 70, 120);
  Tuning wrong({cpu_sets().back().name, nullptr, &slow});
  wrong.clock = fake_clock;
  EXPECT_EQ(wrong(p, 3, {}, {.tiles = false, .libraries = {&lossy}}).tiles.library, nullptr);
  ASSERT_FALSE(wrong.told.empty());
  EXPECT_TRUE(says(wrong.told[0], {"computes 60x70x120 wrongly"}));
  Tuning right({cpu_sets().back().name, nullptr, &slow});
  right.clock = fake_clock;
  EXPECT_EQ(right(p, 3, {}, {.tiles = false, .libraries = {&able}}).tiles.library, &able);
}

TEST(GemmTuner, KeepsAWishAndItsBudgetOfScratch) {
  Tuning tuning(cpu_sets().back());
  const GemmProblem p = plain_problem(300, 300, 900);
  GemmWish wish;
  wish.tiles.kc = 200;
  const GemmChoice plain = choose_gemm(*tuning.set.gemm, p, wish, 2);
  wish.max_scratch_bytes = plain.scratch_bytes;
  GemmWish tuned = wish;
  tuned.tiles = tuning(p, 1, wish).tiles;
  const GemmChoice choice = choose_gemm(*tuning.set.gemm, p, tuned, 2);
  EXPECT_EQ(choice.schedule.kc, plain.schedule.kc);
  EXPECT_LE(choice.scratch_bytes, wish.max_scratch_bytes);
}

}  // namespace
}  // namespace st
