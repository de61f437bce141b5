#include "team/rank_clocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_line.h"
#include "base/os/machine.h"
#include "report/rank_lanes.h"

namespace st {

RankClocks::RankClocks(RankGroups& groups)
    : groups_(groups),
      clocks_(groups.size()),
      times_(groups.size()),
      exchanges_(groups.size()),
      timeline_(static_cast<size_t>(groups.mesh().ranks())) {}

void RankClocks::begin(int64_t step) {
  step_ = step;
  for (size_t here = 0; here < clocks_.size(); ++here) start(here);
}

void RankClocks::start(size_t here) { clocks_[here] = {.exchanged = groups_.seconds(here), .began = os::seconds()}; }

void RankClocks::stop(size_t here, const Exchanges& exchanges) {
  clocks_[here].ended = os::seconds();
  exchanges_[here] = exchanges;
}

void RankClocks::take() {
  timed_step_ = step_;
  for (size_t here = 0; here < clocks_.size(); ++here) {
    const Clock& clock = clocks_[here];
    times_[here] = {
        .seconds = clock.ended - clock.began, .exchange = groups_.seconds(here) - clock.exchanged, .exposed = exchanges_[here].exposed};
  }
  if (groups_.is_of_threads()) std::ranges::copy(times_, timeline_.add(step_).begin());
}

double RankClocks::straggler() const {
  const int64_t known = groups_.is_of_threads() ? timed_step_ : timed_step_ - 1;
  const bool is_known = !timeline_.steps().empty() && timeline_.steps().back().step == known;
  return is_known ? timeline_.steps().back().straggler() : std::numeric_limits<double>::quiet_NaN();
}

void RankClocks::keep(int64_t step, const std::vector<RankReport>& of_all) {
  if (std::ranges::all_of(of_all, [](const RankReport& report) { return report.last_step.seconds > 0; }))
    std::ranges::transform(of_all, timeline_.add(step).begin(), &RankReport::last_step);
}

PipelineTimes RankClocks::pipeline_times() const {
  return shared_times_.step == timed_step_ && timed_step_ == step_ && !shared_times_.lanes.empty() ? shared_times_ : own_pipeline_times();
}

void RankClocks::share_pipeline_times() {
  if (!groups_.is_of_threads() && groups_.mesh().stage > 1) shared_times_ = gather_lanes(groups_.all(), own_pipeline_times());
}

PipelineTimes RankClocks::own_pipeline_times() const {
  PipelineTimes times{.step = timed_step_, .lanes = {}};
  if (timed_step_ == 0 || timed_step_ != step_) return times;
  for (size_t here = 0; here < groups_.size(); ++here) {
    const StageLinks* const stages = groups_.stages(here);
    if (stages == nullptr) return times;
    const std::span<const StageRun> runs = stages->runs().all();
    if (runs.empty()) return {.step = timed_step_, .lanes = {}};  // a step whose loss the host computes is not recorded
    const MeshPosition at = groups_.position_of(here);
    times.lanes.push_back({groups_.rank_of(here), at.stage, at.data, at.tensor, {runs.begin(), runs.end()}});
    for (StageRun& run : times.lanes.back().runs) run.action.micro_batch = run.action.micro_batch * groups_.mesh().data + at.data;
  }
  return times;
}

std::string RankClocks::timeline_json() const {
  const PipelineTimes pipeline = pipeline_times(), own = own_pipeline_times();
  const auto us = [](double seconds) { return std::llround(seconds * 1e6); };
  std::vector<std::string> ranks;
  for (size_t here = 0; here < clocks_.size() && timed_step_ > 0 && timed_step_ == step_; ++here) {
    const Clock& clock = clocks_[here];
    JsonLine rank;
    rank.add("rank", groups_.rank_of(here)).add("step", timed_step_);
    times_[here].add_to(rank);
    rank.add("began_us", us(clock.began)).add("ended_us", us(clock.ended));
    rank.add_json("computed_us", computing_json(clock.began, clock.ended, *exchanges_[here].queue));
    rank.add_json("exchanges", groups_.data(here)->recorder().json());
    if (!own.lanes.empty()) pipeline.add_to(rank, own.lanes[here]);
    ranks.push_back(rank.text());
  }
  JsonLine all;
  return all.add_json("steps", timeline_.json()).add_json("ranks", json_list(ranks)).text();
}

}  // namespace st
