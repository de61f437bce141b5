#include "planner/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace st {
namespace {

constexpr int64_t kMostLost = 100'000, kUsuallyLost = 2000, kLeastSteps = 1000, kLongestRun = int64_t{1} << 53;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// When nodes are lost, in order: those given, and those drawn with exponential times between them.
class LossTimes {
 public:
  LossTimes(double mean, const Failures& failures)
      : mean_(mean), random_(philox_of(mix(static_cast<uint64_t>(failures.seed), hash_name("lost nodes")))), given_(failures.lost_at) {
    drawn_ = after(0);
  }

  double operator[](int64_t index) {
    while (std::ssize(times_) <= index) times_.push_back(next());
    return times_[static_cast<size_t>(index)];
  }

 private:
  double next() {
    if (used_ < given_.size() && given_[used_] < drawn_) return given_[used_++];
    const double now = drawn_;
    drawn_ = after(now);
    return now;
  }

  double after(double now) {
    if (mean_ <= 0) return kNever;
    const auto bits = random_({count_++, 0, 0, 0});
    const double uniform = (static_cast<double>(bits[0]) + 0.5) * 0x1p-32;  // never 0 or 1
    return now - mean_ * std::log(uniform);
  }

  const double mean_;
  const Philox random_;
  const std::vector<double>& given_;
  std::vector<double> times_;
  double drawn_ = kNever;
  size_t used_ = 0;  // of given_
  uint32_t count_ = 0;
};

class Run {
 public:
  Run(double step_seconds, int64_t steps, int64_t interval, const Failures& failures, LossTimes& losses)
      : step_(step_seconds), steps_(steps), failures_(failures), losses_(losses) {
    made_.steps_between_saves = std::min(interval, steps);
  }

  Goodput goodput() {
    while (!computes_to_the_end()) {
      made_.ends = restarts();
      if (!made_.ends) break;
    }
    made_.saving = failures_.save_seconds * static_cast<double>(made_.saves);
    made_.seconds = now_;
    made_.share = step_ * static_cast<double>(made_.steps) / now_;
    return made_;
  }

 private:
  double seconds_of(int64_t steps, int64_t saves) const {
    return static_cast<double>(steps) * step_ + static_cast<double>(saves) * failures_.save_seconds;
  }

  void advance(int64_t steps, int64_t saves) {
    made_.steps += steps;
    made_.saves += saves;
    now_ += seconds_of(steps, saves);
  }

  /// From the last checkpoint. False: a node is lost before, now.
  bool computes_to_the_end() {
    const int64_t interval = made_.steps_between_saves, left = steps_ - made_.steps, whole = left / interval;
    const int64_t saves = whole + (left % interval > 0 ? 1 : 0);
    const double lost = losses_[made_.lost_nodes];
    if (seconds_of(left, saves) <= lost - now_) {
      advance(left, saves);
      return true;
    }
    const int64_t saved = static_cast<int64_t>(std::min(static_cast<double>(whole), (lost - now_) / seconds_of(interval, 1)));
    advance(saved * interval, saved);
    const double since = std::max(0.0, lost - now_);  // rounding may put the last checkpoint after it
    made_.lost_steps +=
        static_cast<int64_t>(std::min(std::ceil(since / step_), static_cast<double>(std::min(interval, steps_ - made_.steps))));
    made_.repeating += since;
    now_ = lost;
    return false;
  }

  /// False: too many nodes are lost.
  bool restarts() {
    double end = 0;
    do {
      end = losses_[made_.lost_nodes++] + failures_.restart_seconds;
    } while (made_.lost_nodes < kMostLost && losses_[made_.lost_nodes] < end);
    made_.restarting += end - now_;
    now_ = end;
    return made_.lost_nodes < kMostLost;
  }

  const double step_;
  const int64_t steps_;
  const Failures& failures_;
  LossTimes& losses_;
  Goodput made_;
  double now_ = 0;
};

/// Steps of a run that loses so many nodes that the times of the losses hardly matter.
int64_t usual_steps(double step_seconds, double mean, const Failures& failures) {
  const double last = failures.lost_at.empty() ? 0 : failures.lost_at.back();
  const double seconds = std::max(static_cast<double>(kUsuallyLost) * mean, 2 * last);
  return static_cast<int64_t>(std::clamp(seconds / step_seconds, static_cast<double>(kLeastSteps), static_cast<double>(kLongestRun)));
}

}  // namespace

Goodput goodput(double step_seconds, int64_t nodes, const Failures& failures) {
  if (!(step_seconds > 0) || !std::isfinite(step_seconds)) return {.steps_between_saves = failures.steps_between_saves};
  const double mean = failures.hours_between * 3600 / static_cast<double>(std::max<int64_t>(nodes, 1));
  const int64_t usual = usual_steps(step_seconds, mean, failures), steps = failures.steps > 0 ? failures.steps : usual;
  LossTimes losses(mean, failures);
  const auto run = [&](int64_t length, int64_t interval) { return Run(step_seconds, length, interval, failures, losses).goodput(); };
  if (failures.steps_between_saves > 0) return run(steps, failures.steps_between_saves);
  // Where times are drawn, the best number for these times alone would be none for another run.
  const int64_t length = mean > 0 ? usual : steps;
  Goodput best = run(length, 1);
  const auto attempt = [&](double interval) {
    const Goodput made = run(length, std::max<int64_t>(1, std::llround(interval)));
    if (made.share >= best.share) best = made;
    return made.share;
  };
  const auto all = static_cast<double>(length);
  for (double interval = 2; interval < 2 * all && attempt(std::min(interval, all)) >= best.share / 2; interval *= 2) {
  }
  const auto middle = static_cast<double>(best.steps_between_saves);
  for (int eighth = -7; eighth < 8; ++eighth) attempt(middle * std::exp2(eighth / 8.0));
  return steps == length ? best : run(steps, best.steps_between_saves);
}

}  // namespace st
