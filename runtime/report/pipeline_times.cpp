#include "report/pipeline_times.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/os/machine.h"
#include "comm/rank_texts.h"

namespace st {
namespace {

/// A lane in a text, followed by its runs: the ranks are of one version (rank_agreement.h).
struct LaneHead {
  int32_t rank = 0, stage = 0, data_rank = 0, tensor_rank = 0;
  int64_t runs = 0;
};

std::string text_of_lanes(const PipelineTimes& own, double now) {
  std::string out(reinterpret_cast<const char*>(&now), sizeof now);
  for (const StageLane& lane : own.lanes) {
    const LaneHead head{lane.rank, lane.stage, lane.data_rank, lane.tensor_rank, std::ssize(lane.runs)};
    out.append(reinterpret_cast<const char*>(&head), sizeof head);
    out.append(reinterpret_cast<const char*>(lane.runs.data()), lane.runs.size() * sizeof(StageRun));
  }
  return out;
}

template <class T>
T take_bytes(std::string_view& from) {
  require(from.size() >= sizeof(T), Code::rank_mismatch, "trainer: a rank reported malformed actions of the last step");
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

/// "node7" of "node7, process 4711".
std::string_view host_in(std::string_view place) { return place.substr(0, place.rfind(", process")); }

}  // namespace

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
  line.add("stage", lane.stage)
      .add("data_rank", lane.data_rank)
      .add("tensor_rank", lane.tensor_rank)
      .add("bubble", bubble(lane))
      .add_json("actions", json_list(actions));
}

PipelineTimes gather_lanes(Communicator& ranks, const PipelineTimes& own) {
  ranks.barrier("actions of the last step");
  const std::vector<std::string> texts = gather_texts(ranks, text_of_lanes(own, os::seconds()), "actions of the last step");
  PipelineTimes all{.step = own.step, .lanes = {}};
  const std::string first_host = ranks.host_of(0);
  double first_now = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    std::string_view rest = texts[static_cast<size_t>(rank)];
    const auto now = take_bytes<double>(rest);
    if (rank == 0) first_now = now;
    const double shift = host_in(ranks.host_of(rank)) == host_in(first_host) ? 0 : first_now - now;
    while (!rest.empty()) {
      const auto head = take_bytes<LaneHead>(rest);
      StageLane lane{head.rank, head.stage, head.data_rank, head.tensor_rank, {}};
      for (int64_t i = 0; i < head.runs; ++i) {
        lane.runs.push_back(take_bytes<StageRun>(rest));
        lane.runs.back().began += shift;
        lane.runs.back().ended += shift;
      }
      all.lanes.push_back(std::move(lane));
    }
  }
  std::ranges::stable_sort(all.lanes, {}, &StageLane::rank);
  return all;
}

}  // namespace st
