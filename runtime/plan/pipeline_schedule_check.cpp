#include <algorithm>

#include "base/error.h"
#include "plan/pipeline_schedule.h"
#include "plan/pipeline_schedule_cell.h"

namespace st {
namespace {

/// The actions that a part has done so far; both halves of backward are counted, since schedules may split it or not.
struct Progress {
  int32_t forward = 0, input = 0, weight = 0;
};

bool has_input_half(Phase phase) { return phase == Phase::backward || phase == Phase::backward_input; }
bool has_weight_half(Phase phase) { return phase == Phase::backward || phase == Phase::backward_weight; }

void note(Progress& it, Phase phase) {
  it.forward += phase == Phase::forward;
  it.input += has_input_half(phase);
  it.weight += has_weight_half(phase);
}

void check_stage(const PipelineSchedule& schedule, int32_t stage) {
  const int32_t m = schedule.micro_batches;
  std::vector<Progress> chunks(static_cast<size_t>(schedule.chunks));
  for (const StageAction& action : schedule.actions[static_cast<size_t>(stage)]) {
    const auto refuse_unless = [&](bool holds, const auto&... why) {
      check(holds, "schedule: stage ", stage, ", ", cell_of(schedule, stage, action), ": ", why...);
    };
    refuse_unless(action.chunk >= 0 && action.chunk < schedule.chunks, "the stage has chunks 0 to ", schedule.chunks - 1);
    refuse_unless(action.micro_batch >= 0 && action.micro_batch < m, "there are micro-batches 0 to ", m - 1);
    refuse_unless(action.phase != Phase::update, "a schedule has no update");
    Progress& it = chunks[static_cast<size_t>(action.chunk)];
    const int32_t k = action.micro_batch;
    if (action.phase == Phase::forward) refuse_unless(k == it.forward, "the part's next forward is of micro-batch ", it.forward);
    if (has_input_half(action.phase)) {
      refuse_unless(k == it.input, "the part's next backward is of micro-batch ", it.input);
      refuse_unless(k < it.forward, "its forward comes later");
    }
    if (has_weight_half(action.phase)) {
      refuse_unless(k == it.weight, "the part's next gradient of weights is of micro-batch ", it.weight);
      refuse_unless(action.phase == Phase::backward || k < it.input, "its backward comes later");
    }
    note(it, action.phase);
  }
  for (int32_t c = 0; c < schedule.chunks; ++c) {
    const Progress& it = chunks[static_cast<size_t>(c)];
    check(it.forward == m && it.input == m && it.weight == m, "schedule: stage ", stage, " runs of chunk ", c, " ", it.forward,
          " forward, ", it.input, " backward and ", it.weight, " weight gradients of ", m, " micro-batches");
  }
}

/// Runs the actions of all stages as far as their dependencies allow.
class Run {
 public:
  Run(const PipelineSchedule& schedule, const StageTimes& times)
      : schedule_(schedule), times_(times), next_(schedule.actions.size()), clock_(schedule.actions.size()) {
    const auto cells = static_cast<size_t>(schedule.parts()) * static_cast<size_t>(schedule.micro_batches);
    forward_.assign(cells, kNever);
    input_.assign(cells, kNever);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int32_t s = 0; s < schedule.stages; ++s)
        while (!is_done(s) && step(s)) goes_on = true;
    }
  }

  double end() const { return *std::ranges::max_element(clock_); }
  /// A stage that has not ended, or -1.
  int32_t stuck() const {
    for (int32_t s = 0; s < schedule_.stages; ++s)
      if (!is_done(s)) return s;
    return -1;
  }
  const StageAction& next(int32_t stage) const { return schedule_.actions[index(stage)][next_[index(stage)]]; }

  /// The action of another part that an action needs, as a part and a phase; part -1: none.
  struct Need {
    int32_t part = -1;
    Phase phase = Phase::forward;
  };
  Need need_of(int32_t stage, const StageAction& action) const {
    const int32_t part = schedule_.part_of(stage, action.chunk);
    if (action.phase == Phase::forward) return {part - 1, Phase::forward};
    if (has_input_half(action.phase) && part + 1 < schedule_.parts()) return {part + 1, Phase::backward_input};
    return {};
  }

 private:
  static constexpr double kNever = -1;
  static size_t index(int32_t i) { return static_cast<size_t>(i); }
  bool is_done(int32_t stage) const { return next_[index(stage)] == schedule_.actions[index(stage)].size(); }
  double& at(std::vector<double>& ends, int32_t part, int32_t micro_batch) {
    return ends[index(part) * index(schedule_.micro_batches) + index(micro_batch)];
  }

  bool step(int32_t stage) {
    const StageAction& action = next(stage);
    double& clock = clock_[index(stage)];
    if (const Need need = need_of(stage, action); need.part >= 0) {
      const double ready = at(need.phase == Phase::forward ? forward_ : input_, need.part, action.micro_batch);
      if (ready == kNever) return false;
      clock = std::max(clock, ready);
    }
    const double time = (action.phase == Phase::forward ? times_.forward : 0) + (has_input_half(action.phase) ? times_.backward_input : 0) +
                        (has_weight_half(action.phase) ? times_.backward_weight : 0);
    clock += time / schedule_.chunks;
    const int32_t part = schedule_.part_of(stage, action.chunk);
    if (action.phase == Phase::forward) at(forward_, part, action.micro_batch) = clock;
    if (has_input_half(action.phase)) at(input_, part, action.micro_batch) = clock;
    ++next_[index(stage)];
    return true;
  }

  const PipelineSchedule& schedule_;
  const StageTimes times_;
  std::vector<size_t> next_;  // by stage
  std::vector<double> clock_;
  std::vector<double> forward_;  // by part and micro-batch: when it ended
  std::vector<double> input_;
};

/// From a stage that waits, on to the stage that it waits for, until one comes again.
std::string cycle_of(const PipelineSchedule& schedule, const Run& run) {
  std::vector<int32_t> stages = {run.stuck()};
  std::string text_of_all;
  for (;;) {
    const int32_t stage = stages.back();
    const StageAction& action = run.next(stage);
    const Run::Need need = run.need_of(stage, action);
    const int32_t other = schedule.stage_of(need.part);
    const StageAction awaited{need.phase == Phase::forward ? Phase::forward : Phase::backward, schedule.chunk_of(need.part),
                              action.micro_batch};
    text_of_all += text(text_of_all.empty() ? "" : "; ", "stage ", stage, " waits in ", cell_of(schedule, stage, action), " for ",
                        cell_of(schedule, other, awaited), " of stage ", other);
    if (std::ranges::find(stages, other) != stages.end()) return text_of_all;
    stages.push_back(other);
  }
}

int32_t most_in_flight(const PipelineSchedule& schedule, int32_t stage, int32_t only) {
  int32_t now = 0, most = 0;
  for (const StageAction& action : schedule.actions[static_cast<size_t>(stage)]) {
    if (only >= 0 && action.chunk != only) continue;
    now += action.phase == Phase::forward;
    most = std::max(most, now);
    now -= has_weight_half(action.phase);
  }
  return most;
}

}  // namespace

void check_schedule(const PipelineSchedule& schedule) {
  check(schedule.stages >= 1 && schedule.chunks >= 1 && schedule.micro_batches >= 1 && std::ssize(schedule.actions) == schedule.stages,
        "schedule: it needs 1 or more stages, chunks and micro-batches and actions of each stage, got ", schedule.stages, ", ",
        schedule.chunks, ", ", schedule.micro_batches, " and actions of ", schedule.actions.size());
  for (int32_t s = 0; s < schedule.stages; ++s) check_stage(schedule, s);
  const Run run(schedule, {});
  if (run.stuck() >= 0) fail(Code::invalid_argument, text("schedule: it never ends: ", cycle_of(schedule, run)));
}

bool splits_backward(const PipelineSchedule& schedule) {
  return std::ranges::any_of(schedule.actions, [](const std::vector<StageAction>& of_stage) {
    return std::ranges::find(of_stage, Phase::backward_weight, &StageAction::phase) != of_stage.end();
  });
}

int32_t in_flight(const PipelineSchedule& schedule, int32_t stage, int32_t chunk) { return most_in_flight(schedule, stage, chunk); }

int32_t in_flight(const PipelineSchedule& schedule, int32_t stage) { return most_in_flight(schedule, stage, -1); }

double makespan(const PipelineSchedule& schedule, const StageTimes& times) { return Run(schedule, times).end(); }

double bubble(const PipelineSchedule& schedule, const StageTimes& times) {
  return 1 - schedule.micro_batches * (times.forward + times.backward_input + times.backward_weight) / makespan(schedule, times);
}

}  // namespace st
