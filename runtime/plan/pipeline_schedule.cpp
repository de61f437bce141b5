#include "plan/pipeline_schedule.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace st {
namespace {

using Actions = std::vector<StageAction>;

/// Forward passes by `forwards`, of which `ahead` come first; then one backward before each of the rest.
Actions one_forward_one_backward(const Actions& forwards, const Actions& backwards, size_t ahead) {
  Actions all(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (size_t i = 0; i < backwards.size(); ++i) {
    if (ahead + i < forwards.size()) all.push_back(forwards[ahead + i]);
    all.push_back(backwards[i]);
  }
  return all;
}

Actions by_number(Phase phase, int32_t micro_batches) {
  Actions all;
  for (int32_t k = 0; k < micro_batches; ++k) all.push_back({phase, 0, k});
  return all;
}

/// Rounds of about as many micro-batches as there are stages; in each round, chunk after chunk.
struct Rounds {
  Actions forwards, backwards;
  int32_t largest = 0;

  Rounds(int32_t stages, int32_t chunks, int32_t micro_batches) {
    const int32_t rounds = std::max(1, micro_batches / stages);
    for (int32_t r = 0, first = 0; r < rounds; ++r) {
      const int32_t size = micro_batches / rounds + (r < micro_batches % rounds ? 1 : 0);
      for (int32_t c = 0; c < chunks; ++c)
        for (int32_t k = first; k < first + size; ++k) {
          forwards.push_back({Phase::forward, c, k});
          backwards.push_back({Phase::backward, chunks - 1 - c, k});
        }
      first += size;
      largest = std::max(largest, size);
    }
  }
};

Actions interleaved(const PipelineSchedule& of, int32_t stage) {
  const Rounds rounds(of.stages, of.chunks, of.micro_batches);
  const size_t later = static_cast<size_t>(of.stages - 1 - stage), chunks = static_cast<size_t>(of.chunks);
  const size_t ahead = later * 2 + (chunks - 1) * static_cast<size_t>(rounds.largest);
  return one_forward_one_backward(rounds.forwards, rounds.backwards, std::min(ahead, rounds.forwards.size()));
}

/// As 1F1B, but weight gradients wait until as many micro-batches are in flight as there are stages, or forward is over.
Actions zb_h1(const PipelineSchedule& of, int32_t stage) {
  Actions all = by_number(Phase::forward, std::min(of.micro_batches, of.stages - stage));
  auto next = static_cast<int32_t>(all.size());
  int32_t weights = 0;
  for (int32_t k = 0; k < of.micro_batches; ++k) {
    all.push_back({Phase::backward_input, 0, k});
    const bool is_full = next - weights >= of.stages, goes_forward = next < of.micro_batches;
    if (is_full || !goes_forward) all.push_back({Phase::backward_weight, 0, weights++});
    if (goes_forward) all.push_back({Phase::forward, 0, next++});
  }
  while (weights < of.micro_batches) all.push_back({Phase::backward_weight, 0, weights++});
  return all;
}

/// The preference of a stage of zb-v if several actions are possible: from the first to the last.
using Preference = std::array<StageAction, 6>;

/// All stages at once, in units of time: each takes the action that it prefers of those that are possible, with at most 2 p chunks in
/// flight.
void fill_by_preference(PipelineSchedule& schedule, const Preference& preference) {
  const int32_t p = schedule.stages, parts = schedule.parts(), m = schedule.micro_batches;
  struct Part {
    int32_t forward = 0, input = 0, weight = 0;  // micro-batches done
    int32_t was_forward = 0, was_input = 0;      // before this unit of time
  };
  std::vector<Part> all(static_cast<size_t>(parts));
  const auto at = [&](int32_t part) -> Part& { return all[static_cast<size_t>(part)]; };
  schedule.actions.assign(static_cast<size_t>(p), {});
  for (int64_t left = int64_t{3} * parts * m; left > 0;) {
    const int64_t before = left;
    for (Part& it : all) it.was_forward = it.forward, it.was_input = it.input;
    for (int32_t s = 0; s < p; ++s) {
      const Part &down = at(schedule.part_of(s, 0)), &up = at(schedule.part_of(s, 1));
      const bool is_full = down.forward + up.forward - down.weight - up.weight >= 2 * p;
      const auto next = [&](const StageAction& kind) -> int32_t* {  // its number of micro-batches; null: not possible now
        const int32_t here = schedule.part_of(s, kind.chunk);
        Part& it = at(here);
        if (kind.phase == Phase::backward_weight) return it.weight < it.input ? &it.weight : nullptr;
        if (kind.phase == Phase::forward)
          return !is_full && it.forward < (here == 0 ? m : at(here - 1).was_forward) ? &it.forward : nullptr;
        return it.input < std::min(it.forward, here + 1 == parts ? m : at(here + 1).was_input) ? &it.input : nullptr;
      };
      for (StageAction action : preference) {
        int32_t* const done = next(action);
        if (done == nullptr) continue;
        action.micro_batch = (*done)++;
        schedule.actions[static_cast<size_t>(s)].push_back(action);
        --left;
        break;
      }
    }
    require(left < before, Code::internal, "schedule: zb-v of ", p, " stages and ", m, " micro-batches does not end");
  }
}

/// The preferences were found by trying all 720 orders, as the paper's own schedules are found by search. The one for m >= p has the least
/// mean makespan over even p to 10, m to 3 p, B of 0.9 to 1.5 F and W of 0.7 to 1.1 F, and reaches the closed form for p to 64: it gives up
/// chunk 0's memory as early as it can. With fewer micro-batches memory is no limit, and weight gradients come last.
void zb_v(PipelineSchedule& schedule) {
  constexpr StageAction F0{Phase::forward, 0}, F1{Phase::forward, 1}, B0{Phase::backward_input, 0}, B1{Phase::backward_input, 1},
      W0{Phase::backward_weight, 0}, W1{Phase::backward_weight, 1};
  const bool is_few = schedule.micro_batches < schedule.stages;
  fill_by_preference(schedule, is_few ? Preference{F1, F0, B0, B1, W0, W1} : Preference{F1, B0, W0, B1, F0, W1});
}

constexpr int64_t kMostCells = 1 << 24;
constexpr std::array<std::string_view, 5> kNames = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"};

}  // namespace

int32_t usual_chunks(std::string_view name) { return name == "interleaved" || name == "zb-v" ? 2 : 1; }

PipelineSchedule make_schedule(std::string_view name, int32_t stages, int32_t chunks, int32_t micro_batches) {
  check(std::ranges::find(kNames, name) != kNames.end(), "schedule: there is no \"", name,
        "\"; there are gpipe, 1f1b, interleaved, zb-h1 and zb-v");
  check(stages >= 1 && micro_batches >= 1, "schedule: ", name, " needs 1 or more stages and micro-batches, got ", stages, " and ",
        micro_batches);
  if (name == "interleaved")
    check(chunks >= 2, "schedule: interleaved needs 2 or more chunks a stage, got ", chunks, "; with 1 it is 1f1b");
  else
    check(chunks == usual_chunks(name), "schedule: ", name, " has ", usual_chunks(name), " chunk(s) a stage, got ", chunks);
  check(int64_t{stages} * chunks <= kMostCells / micro_batches, "schedule: ", stages, " stages x ", chunks, " chunks x ", micro_batches,
        " micro-batches are more than ", kMostCells, " in a table");
  PipelineSchedule schedule{.stages = stages, .chunks = chunks, .micro_batches = micro_batches, .actions = {}};
  if (name == "zb-v") {
    schedule.placement = PipelineSchedule::Placement::v;
    zb_v(schedule);
    return schedule;
  }
  for (int32_t s = 0; s < stages; ++s) {
    const int32_t ahead = name == "gpipe" ? micro_batches : std::min(micro_batches, stages - 1 - s);
    schedule.actions.push_back(name == "interleaved" ? interleaved(schedule, s)
                               : name == "zb-h1"
                                   ? zb_h1(schedule, s)
                                   : one_forward_one_backward(by_number(Phase::forward, micro_batches),
                                                              by_number(Phase::backward, micro_batches), static_cast<size_t>(ahead)));
  }
  return schedule;
}

}  // namespace st
