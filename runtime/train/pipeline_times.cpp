#include "train/pipeline_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace st {

double PipelineTimes::began() const {
  double first = std::numeric_limits<double>::infinity();
  for (const StageLane& lane : lanes)
    if (!lane.runs.empty()) first = std::min(first, lane.runs.front().computed_from());
  return first;
}

double PipelineTimes::ended() const {
  double last = -std::numeric_limits<double>::infinity();
  for (const StageLane& lane : lanes)
    if (!lane.runs.empty()) last = std::max(last, lane.runs.back().ended);
  return last;
}

double PipelineTimes::bubble(const StageLane& lane) const {
  const double whole = ended() - began();
  double computed = 0;
  for (const StageRun& run : lane.runs) computed += run.computed();
  return whole > 0 ? std::clamp(1 - computed / whole, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

double PipelineTimes::bubble() const {
  double sum = 0;
  for (const StageLane& lane : lanes) sum += bubble(lane);
  return lanes.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(lanes.size());
}

void PipelineTimes::add_to(JsonLine& line, const StageLane& lane) const {
  const auto us = [](double seconds) { return std::llround(seconds * 1e6); };
  std::vector<std::string> actions;
  JsonLine action;
  for (const StageRun& run : lane.runs) {
    action.start();
    action.add("phase", name_of(run.action.phase)).add("chunk", run.action.chunk).add("micro_batch", run.action.micro_batch);
    action.add("began_us", us(run.began))
        .add("ended_us", us(run.ended))
        .add("waited_us", us(run.waited))
        .add("exchanged_us", us(run.exchanged));
    actions.push_back(action.text());
  }
  line.add("stage", lane.stage).add("data_rank", lane.data_rank).add("bubble", bubble(lane)).add_json("actions", json_list(actions));
}

}  // namespace st
