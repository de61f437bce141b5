#include "parts/gemm_tuner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/os/cpu.h"
#include "gemm/gemm_library.h"
#include "parts/drawn_operands.h"

namespace st {
namespace {

constexpr size_t kMostCandidates = 12, kFinalists = 4;  // the default among both
constexpr int kFirstRounds = 3, kLeastRounds = 7, kMostRounds = 15;
constexpr double kSample = 5e-4;  // seconds a sample lasts at least, so that the clock sees it
constexpr double kWarm = 5e-3;    // a longer product's first microseconds do not show
constexpr double kSlack = 1.25;   // candidates slower than the default, other programs
constexpr double kGain = 1.01;

double quantile_of(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

/// A candidate and, of each round, its seconds.
struct TimedSchedule {
  TileSchedule schedule;
  std::vector<double> seconds;
};

/// Quantile of the ratio of another runner's seconds to this one's, by round: above 1 this one is faster.
double gain_of(const TimedSchedule& other, const TimedSchedule& one, double share) {
  std::vector<double> ratios;
  for (size_t i = 0; i < one.seconds.size(); ++i) ratios.push_back(other.seconds[i] / one.seconds[i]);
  return quantile_of(std::move(ratios), share);
}

bool is_beyond_spread(const TimedSchedule& other, const TimedSchedule& one) {
  return gain_of(other, one, 0.1) > 1 && gain_of(other, one, 0.5) > kGain;
}

class Race {
 public:
  Race(const GemmTuner::Parts& parts, const GemmProblem& problem, bool compares, Workers& workers, int64_t scratch, double deadline)
      : kernels_(parts.kernels),
        clock_(parts.clock),
        problem_(problem),
        workers_(workers),
        operands_(problem, compares, parts.memory),
        scratch_(scratch, parts.memory, MemoryRole::other),
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

  /// Whether this one computes what the default does, but for rounding.
  bool is_right(const TileSchedule& standard, const TileSchedule& one) {
    return operands_.agree([&] { run(standard); }, [&] { run(one); });
  }

  /// How many candidates may begin, with time for the finalists' rounds left.
  size_t places() const {
    const double samples = (deadline_ - clock_()) / (sample_ * kSlack);
    const double first = samples - static_cast<double>(kFinalists * kLeastRounds);
    if (first < static_cast<double>(kFinalists) * kFirstRounds) return static_cast<size_t>(samples / (kFirstRounds + kLeastRounds));
    return static_cast<size_t>(first / kFirstRounds);
  }

  /// One sample of each, the first of them another one in each round. False: the time is over, and the round is not counted.
  bool round(std::vector<TimedSchedule>& runners) {
    operands_.draw(++seed_ * 4, workers_);
    std::vector<double> seconds(runners.size());
    for (size_t i = 0; i < runners.size(); ++i) {
      if (clock_() + sample_ > deadline_) return false;
      const size_t at = (i + seed_) % runners.size();
      if (warms_up_) run(runners[at].schedule);
      seconds[at] = seconds_of(runners[at].schedule, repeats_);
    }
    for (size_t i = 0; i < runners.size(); ++i) runners[i].seconds.push_back(seconds[i]);
    return true;
  }

 private:
  bool fits(int runners, int rounds) const { return clock_() + sample_ * runners * rounds <= deadline_; }

  void run(const TileSchedule& schedule) {
    kernels_.run(problem_, schedule, operands_.get(), {scratch_.data(), static_cast<size_t>(scratch_.size())}, workers_);
  }

  double seconds_of(const TileSchedule& schedule, int64_t times) {
    const double begin = clock_();
    for (int64_t i = 0; i < times; ++i) run(schedule);
    return (clock_() - begin) / static_cast<double>(times);
  }

  const GemmKernels& kernels_;
  const std::function<double()>& clock_;
  const GemmProblem& problem_;
  Workers& workers_;
  DrawnOperands operands_;
  Memory scratch_;
  double deadline_, sample_ = 0;
  int64_t repeats_ = 1;
  bool warms_up_ = true;
  uint64_t seed_ = 0;
};

/// Libraries first, behind the default, should there not be the time for all.
std::vector<TimedSchedule> runners_of(const std::vector<GemmCandidate>& own, const GemmContest& contest) {
  std::vector<TimedSchedule> runners = {{own[0].schedule, {}}};
  for (const GemmLibrary* library : contest.libraries) {
    runners.push_back(runners[0]);
    runners.back().schedule.library = library;
  }
  for (size_t i = 1; contest.tiles && i < own.size(); ++i) runners.push_back({own[i].schedule, {}});
  return runners;
}

/// The default stays first; behind it the fastest of the others, the fastest tiles of our own among them: a library has to beat those.
void keep_finalists(std::vector<TimedSchedule>& runners) {
  std::stable_sort(runners.begin() + 1, runners.end(), [&](const TimedSchedule& a, const TimedSchedule& b) {
    return gain_of(runners[0], a, 0.5) > gain_of(runners[0], b, 0.5);
  });
  const auto tiles =
      std::find_if(runners.begin() + 1, runners.end(), [](const TimedSchedule& one) { return one.schedule.library == nullptr; });
  if (tiles != runners.end() && tiles - runners.begin() >= std::ptrdiff_t{kFinalists})
    std::rotate(runners.begin() + kFinalists - 1, tiles, tiles + 1);
  runners.resize(std::min(runners.size(), kFinalists));
  for (TimedSchedule& runner : runners) runner.seconds.clear();
}

/// Nothing: there was not the time to tell.
std::optional<TunedSchedule> winner_of(Race& race, std::vector<TimedSchedule> runners, double flops) {
  for (int i = 0; i < kFirstRounds; ++i)
    if (!race.round(runners)) return std::nullopt;
  keep_finalists(runners);
  for (int i = 0; i < kMostRounds && race.round(runners); ++i) {
  }
  if (runners[0].seconds.size() < kLeastRounds) return std::nullopt;
  // A library has bits of its own: it has to be faster than our own winner, too.
  const TimedSchedule* winner = &runners[0];
  for (const bool library : {false, true}) {
    const TimedSchedule* best = winner;
    for (const TimedSchedule& one : runners)
      if ((one.schedule.library != nullptr) == library && gain_of(*best, one, 0.5) > 1) best = &one;
    if (is_beyond_spread(*winner, *best)) winner = best;
  }
  const GemmLibrary* library = winner->schedule.library;
  return TunedSchedule{winner->schedule, flops / quantile_of(winner->seconds, 0.5), flops / quantile_of(runners[0].seconds, 0.5),
                       library == nullptr ? "" : library->identity()};
}

}  // namespace

TunedTiles GemmTuner::tune(const GemmProblem& problem, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& wanted) {
  const double begin = parts_.clock();
  const GemmKernels& kernels = parts_.kernels;
  const TunedTiles standard{wish.tiles,
                            wish.tiles == TileSchedule{} && !wish.order_is_wished ? ScheduleSource::table : ScheduleSource::requested};
  GemmProblem measured = problem;  // of a run's own, and drawn
  measured.alpha = 1, measured.beta = 0;
  GemmContest contest = wanted;
  if (!library_multiplies(problem)) contest.libraries.clear();
  const MachineModel machine = machine_model(os::cpu(), parts_.kernel_class, problem, os::clock_rate());
  if (flops_of(problem) == 0 || machine.peak() == 0 || (!contest.tiles && contest.libraries.empty())) return standard;

  GemmProblem added = problem;  // what a run may ask for, as choose_gemm() counts it
  added.beta = 1;
  const auto scratch_of = [&](const TileSchedule& schedule) { return kernels.workspace(added, schedule, workers.threads()); };
  const auto fits = [&](const TileSchedule& schedule) { return scratch_of(schedule) <= wish.scratch_budget(); };
  const auto is_standard = [&](const TileSchedule& schedule) { return schedule == kernels.schedule(problem, wish.tiles); };
  const auto by_library = [&](const GemmLibrary* library, ScheduleSource source) {
    TunedTiles tiles{wish.tiles, source};
    tiles.tiles.library = library;
    return tiles;
  };
  const std::string key =
      tuning_key(os::cpu(), parts_.kernel_class, measured, wish.tiles, wish.order_is_wished, workers.threads(), contest);
  if (const auto known = parts_.cache.find(key); known && is_candidate(kernels, problem, wish.tiles, known->schedule)) {
    for (const GemmLibrary* library : contest.libraries)
      if (library->identity() == known->library && fits(kernels.schedule(problem, wish.tiles)))  // as when it was measured
        return by_library(library, ScheduleSource::cache);
    const TileSchedule made = kernels.schedule(problem, as_wished(problem, known->schedule));  // the file has not all of it
    if (known->library.empty() && is_standard(made)) return standard;
    if (known->library.empty() && fits(made)) return {as_wished(problem, made), ScheduleSource::cache};
  }

  const std::vector<GemmCandidate> own =
      gemm_candidates(kernels, problem, wish.tiles, wish.order_is_wished, machine, workers.threads(), kMostCandidates);
  const double expected = flops_of(problem) / std::max(own[0].rate, 1.0);
  std::vector<TimedSchedule> runners = runners_of(own, contest);
  if (!fits(runners[0].schedule)) return standard;
  std::erase_if(runners, [&](const TimedSchedule& runner) { return !fits(runner.schedule); });
  int64_t scratch = 0;
  for (const TimedSchedule& runner : runners) scratch = std::max(scratch, scratch_of(runner.schedule));
  const auto leave = [&](const auto&... why) {
    parts_.log.info("tuning", problem.m, "x", problem.n, "x", problem.k, " keeps its default tiles: ", why...);
    return standard;
  };
  const bool compares = !contest.libraries.empty();
  const int64_t bytes = DrawnOperands::bytes_for(problem, compares) + scratch;
  if (runners.size() < 2) return standard;
  if (bytes > parts_.available_memory()) return leave("measuring needs ", text_of_bytes(bytes), " of memory, more than is available");
  const double least = expected * 2 * (kFirstRounds + kLeastRounds) + static_cast<double>(bytes) / 2e9;
  if (least > seconds) return leave("measuring needs about ", least, " s, the limit is ", seconds, " s");

  std::optional<TunedSchedule> winner;
  try {
    Race race(parts_, measured, compares, workers, scratch, begin + seconds);
    if (race.begin(runners[0].schedule)) {
      const TileSchedule base = runners[0].schedule;
      std::erase_if(runners, [&](const TimedSchedule& runner) {
        const GemmLibrary* library = runner.schedule.library;
        if (library == nullptr || race.is_right(base, runner.schedule)) return false;
        parts_.log.warning("tuning", library->identity(), " (", library->file(), ") computes ", problem.m, "x", problem.n, "x", problem.k,
                           " wrongly and is excluded");
        return true;
      });
      runners.resize(std::min(std::max<size_t>(race.places(), 2), runners.size()));
      winner = winner_of(race, std::move(runners), flops_of(problem));
    }
  } catch (const Error& error) {  // the host's allocator may have less than the system
    if (error.code() != Code::out_of_memory) throw;
    return leave(error.message());
  }
  if (!winner) return leave(seconds, " s are too short to distinguish the candidates");
  parts_.cache.keep(key, *winner);
  parts_.log.info("tuning", problem.m, "x", problem.n, "x", problem.k, ": ", text_of(winner->schedule), ", ", winner->rate / 1e9,
                  " GFLOP/s, the default ", winner->standard_rate / 1e9);
  if (winner->schedule.library != nullptr) return by_library(winner->schedule.library, ScheduleSource::tuned);
  if (is_standard(winner->schedule)) return standard;
  return {as_wished(problem, winner->schedule), ScheduleSource::tuned};
}

GemmChoice GemmTuner::tuned(const GemmChoice& choice, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& contest) {
  const TunedTiles found = tune(choice.problem, wish, workers, seconds, contest);
  if (found.source == choice.source) return choice;
  GemmWish wanted = wish;
  wanted.tiles = found.tiles;
  GemmChoice made = choose_gemm(parts_.kernels, choice.problem, wanted, workers.threads());
  made.adjusted = choice.adjusted;  // what was wished for is as it was
  made.source = found.source;
  return made;
}

}  // namespace st
