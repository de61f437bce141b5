#include "parts/gemm_tuner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/float16.h"

namespace st {
namespace {

constexpr size_t kMostCandidates = 12, kFinalists = 4;  // the default among both
constexpr int kFirstRounds = 3, kLeastRounds = 7, kMostRounds = 15;
constexpr double kSample = 5e-4;  // seconds a sample lasts at least, so that the clock sees it
constexpr double kWarm = 5e-3;    // a longer product's first microseconds do not show
constexpr double kSlack = 1.25;   // candidates slower than the default, other programs
constexpr double kGain = 1.01;

int64_t extent_of(int64_t rows, int64_t columns, const MatrixStrides& at, int64_t batch, int64_t step) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (rows - 1) * at.row + (columns - 1) * at.column + (batch - 1) * step + 1;
}

/// Operands of a problem, of the dtypes and strides that it has.
class Operands {
 public:
  static int64_t bytes_for(const GemmProblem& p) {
    int64_t sum = 0;
    for (const int64_t bytes : sizes(p)) sum += bytes;
    return sum;
  }

  Operands(const GemmProblem& p, const std::shared_ptr<MemorySource>& memory) : problem_(p) {
    const auto bytes = sizes(p);
    for (size_t i = 0; i < bytes.size(); ++i) memory_[i] = Memory(bytes[i], memory);
  }

  /// Numbers in [-1, 1). C is written only.
  void draw(uint64_t seed, Workers& workers) {
    fill(memory_[0], problem_.a_type, seed, workers);
    fill(memory_[1], problem_.b_type, seed + 1, workers);
    if (problem_.bias) fill(memory_[3], problem_.c_type, seed + 2, workers);
  }

  GemmOperands get() const {
    return {memory_[0].data(), memory_[1].data(), memory_[2].data(), problem_.bias ? memory_[3].data() : nullptr};
  }

 private:
  static std::array<int64_t, 4> sizes(const GemmProblem& p) {
    return {extent_of(p.m, p.k, p.a, p.batch, p.a_batch) * bytes_of(p.a_type),
            extent_of(p.k, p.n, p.b, p.batch, p.b_batch) * bytes_of(p.b_type),
            extent_of(p.m, p.n, p.c, p.batch, p.c_batch) * bytes_of(p.c_type), p.bias ? p.n * bytes_of(p.c_type) : 0};
  }

  static void fill(Memory& memory, DType type, uint64_t seed, Workers& workers) {
    constexpr int64_t kGrain = 1 << 16;
    const int64_t elements = memory.size() / bytes_of(type);
    workers.run_range(elements, kGrain, [&](int64_t begin, int64_t end) {
      uint64_t state = (seed * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(begin)) | 1;
      for (int64_t i = begin; i < end; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const float value = static_cast<float>(state >> 40) * 0x1p-23F - 1.0F;
        if (type == DType::f32) reinterpret_cast<float*>(memory.data())[i] = value;
        if (type == DType::bf16) reinterpret_cast<uint16_t*>(memory.data())[i] = bf16_of(value);
        if (type == DType::f16) reinterpret_cast<uint16_t*>(memory.data())[i] = f16_of(value);
      }
    });
  }

  const GemmProblem& problem_;
  std::array<Memory, 4> memory_;
};

double quantile_of(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

/// A candidate and, of each round, its seconds.
struct Runner {
  TileSchedule schedule;
  std::vector<double> seconds;
};

/// Of the default's seconds to this one's, round by round: above 1 it is faster.
double gain_of(const Runner& standard, const Runner& one, double share) {
  std::vector<double> ratios;
  for (size_t i = 0; i < one.seconds.size(); ++i) ratios.push_back(standard.seconds[i] / one.seconds[i]);
  return quantile_of(std::move(ratios), share);
}

class Race {
 public:
  Race(const GemmKernels& kernels, const GemmProblem& problem, Workers& workers, int64_t scratch,
       const std::shared_ptr<MemorySource>& memory, double deadline)
      : kernels_(kernels),
        problem_(problem),
        workers_(workers),
        operands_(problem, memory),
        scratch_(scratch, memory),
        deadline_(deadline) {}

  /// Whether there is time for a first look at two candidates at least, and for telling them apart.
  bool begin(const TileSchedule& standard) {
    operands_.draw(1, workers_);
    run(standard);  // touches all memory
    double once = seconds_of(standard, 1);
    for (int i = 0; i < 2 && once < kSample; ++i) once = std::min(once, seconds_of(standard, 1));  // other programs run, too
    repeats_ = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(kSample / std::max(once, 1e-7))), 1, 10000);
    warms_up_ = once < kWarm;
    sample_ = once * static_cast<double>(repeats_ + (warms_up_ ? 1 : 0));
    return fits(2, kLeastRounds);
  }

  /// How many candidates may begin, with time for the finalists' rounds left.
  size_t places() const {
    const double samples = (deadline_ - os::seconds()) / (sample_ * kSlack);
    const double first = samples - static_cast<double>(kFinalists * kLeastRounds);
    if (first < static_cast<double>(kFinalists) * kFirstRounds) return static_cast<size_t>(samples / (kFirstRounds + kLeastRounds));
    return static_cast<size_t>(first / kFirstRounds);
  }

  /// One sample of each, the first of them another one in each round. False: the time is over, and the round is not counted.
  bool round(std::vector<Runner>& runners) {
    operands_.draw(++seed_ * 4, workers_);
    std::vector<double> seconds(runners.size());
    for (size_t i = 0; i < runners.size(); ++i) {
      if (os::seconds() + sample_ > deadline_) return false;
      const size_t at = (i + seed_) % runners.size();
      if (warms_up_) run(runners[at].schedule);
      seconds[at] = seconds_of(runners[at].schedule, repeats_);
    }
    for (size_t i = 0; i < runners.size(); ++i) runners[i].seconds.push_back(seconds[i]);
    return true;
  }

 private:
  bool fits(int runners, int rounds) const { return os::seconds() + sample_ * runners * rounds <= deadline_; }

  void run(const TileSchedule& schedule) {
    kernels_.run(problem_, schedule, operands_.get(), {scratch_.data(), static_cast<size_t>(scratch_.size())}, workers_);
  }

  double seconds_of(const TileSchedule& schedule, int64_t times) {
    const double begin = os::seconds();
    for (int64_t i = 0; i < times; ++i) run(schedule);
    return (os::seconds() - begin) / static_cast<double>(times);
  }

  const GemmKernels& kernels_;
  const GemmProblem& problem_;
  Workers& workers_;
  Operands operands_;
  Memory scratch_;
  double deadline_, sample_ = 0;
  int64_t repeats_ = 1;
  bool warms_up_ = true;
  uint64_t seed_ = 0;
};

/// The default stays first; behind it the fastest of the others.
void keep_finalists(std::vector<Runner>& runners) {
  std::stable_sort(runners.begin() + 1, runners.end(),
                   [&](const Runner& a, const Runner& b) { return gain_of(runners[0], a, 0.5) > gain_of(runners[0], b, 0.5); });
  runners.resize(std::min(runners.size(), kFinalists));
  for (Runner& runner : runners) runner.seconds.clear();
}

/// Nothing: there was not the time to tell.
std::optional<TunedSchedule> winner_of(Race& race, std::vector<Runner> runners, double flops) {
  for (int i = 0; i < kFirstRounds; ++i)
    if (!race.round(runners)) return std::nullopt;
  keep_finalists(runners);
  for (int i = 0; i < kMostRounds && race.round(runners); ++i) {
  }
  if (runners[0].seconds.size() < kLeastRounds) return std::nullopt;
  const auto best = std::ranges::max_element(runners, {}, [&](const Runner& one) { return gain_of(runners[0], one, 0.5); });
  const bool is_beyond_spread = gain_of(runners[0], *best, 0.1) > 1 && gain_of(runners[0], *best, 0.5) > kGain;
  const Runner& winner = is_beyond_spread ? *best : runners[0];
  return TunedSchedule{winner.schedule, flops / quantile_of(winner.seconds, 0.5), flops / quantile_of(runners[0].seconds, 0.5)};
}

}  // namespace

TunedTiles GemmTuner::tune(const GemmProblem& problem, const GemmWish& wish, Workers& workers, double seconds) {
  const double begin = os::seconds();
  const GemmKernels& kernels = parts_.kernels;
  const TunedTiles standard{wish.tiles,
                            wish.tiles == TileSchedule{} && !wish.order_is_wished ? ScheduleSource::table : ScheduleSource::wish};
  GemmProblem measured = problem;  // of a run's own, and drawn
  measured.alpha = 1, measured.beta = 0;
  const MachineModel machine = machine_model(os::cpu(), parts_.kernel_class, problem, os::clock_rate());
  if (flops_of(problem) == 0 || machine.peak() == 0) return standard;

  GemmProblem added = problem;  // what a run may ask for, as choose_gemm() counts it
  added.beta = 1;
  const auto scratch_of = [&](const TileSchedule& schedule) { return kernels.workspace(added, schedule, workers.threads()); };
  const auto fits = [&](const TileSchedule& schedule) {
    return wish.max_scratch_bytes == 0 || scratch_of(schedule) <= wish.max_scratch_bytes;
  };
  const auto is_standard = [&](const TileSchedule& schedule) { return schedule == kernels.schedule(problem, wish.tiles); };
  const std::string key = tuning_key(os::cpu(), parts_.kernel_class, measured, wish.tiles, wish.order_is_wished, workers.threads());
  if (const auto known = parts_.cache.find(key); known && is_candidate(kernels, problem, wish.tiles, known->schedule)) {
    const TileSchedule made = kernels.schedule(problem, as_wished(problem, known->schedule));  // the file has not all of it
    if (is_standard(made)) return standard;
    if (fits(made)) return {as_wished(problem, made), ScheduleSource::cache};
  }

  std::vector<Runner> runners;
  int64_t scratch = 0;
  double expected = 0;
  for (const GemmCandidate& one :
       gemm_candidates(kernels, problem, wish.tiles, wish.order_is_wished, machine, workers.threads(), kMostCandidates)) {
    if (!runners.empty() && !fits(one.schedule)) continue;
    if (runners.empty()) expected = flops_of(problem) / std::max(one.rate, 1.0);
    runners.push_back({one.schedule, {}});
    scratch = std::max(scratch, scratch_of(one.schedule));
  }
  const auto leave = [&](const auto&... why) {
    parts_.log.info("tuning", problem.m, "x", problem.n, "x", problem.k, " keeps its default tiles: ", why...);
    return standard;
  };
  const int64_t bytes = Operands::bytes_for(problem) + scratch;
  if (runners.size() < 2 || !fits(runners[0].schedule)) return standard;
  if (bytes > parts_.available_memory()) return leave("measuring takes ", text_of_bytes(bytes), ", which is not there");
  const double least = expected * 2 * (kFirstRounds + kLeastRounds) + static_cast<double>(bytes) / 2e9;
  if (least > seconds) return leave("measuring takes about ", least, " s, allowed is ", seconds, " s");

  std::optional<TunedSchedule> winner;
  try {
    Race race(kernels, measured, workers, scratch, parts_.memory, begin + seconds);
    if (race.begin(runners[0].schedule)) {
      runners.resize(std::clamp<size_t>(race.places(), 2, runners.size()));
      winner = winner_of(race, std::move(runners), flops_of(problem));
    }
  } catch (const Error& error) {  // the host's allocator may have less than the system
    if (error.code() != Code::out_of_memory) throw;
    return leave(error.message());
  }
  if (!winner) return leave(seconds, " s are too short to tell the candidates apart");
  parts_.cache.keep(key, *winner);
  parts_.log.info("tuning", problem.m, "x", problem.n, "x", problem.k, ": ", text_of(winner->schedule), ", ", winner->rate / 1e9,
                  " GFLOP/s, the default ", winner->standard_rate / 1e9);
  if (is_standard(winner->schedule)) return standard;
  return {as_wished(problem, winner->schedule), ScheduleSource::tuned};
}

GemmChoice GemmTuner::tuned(const GemmChoice& choice, const GemmWish& wish, Workers& workers, double seconds) {
  const TunedTiles found = tune(choice.problem, wish, workers, seconds);
  if (found.source == choice.source) return choice;
  GemmWish wanted = wish;
  wanted.tiles = found.tiles;
  GemmChoice made = choose_gemm(parts_.kernels, choice.problem, wanted, workers.threads());
  made.adjusted = choice.adjusted;  // what was wished for is as it was
  made.source = found.source;
  return made;
}

}  // namespace st
