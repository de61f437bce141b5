#include <algorithm>

#include "base/error.h"
#include "plan/pipeline_schedule.h"

namespace st {
namespace {

bool makes_input_gradient(Phase phase) { return phase == Phase::backward || phase == Phase::backward_input; }

/// How many actions of each stage have ended: what an action knows when it begins, by the dependencies of the schedule alone.
using Known = std::vector<int32_t>;

class Causes {
 public:
  explicit Causes(const PipelineSchedule& schedule)
      : schedule_(schedule),
        next_(schedule.actions.size(), 0),
        known_(schedule.actions.size(), Known(schedule.actions.size(), 0)),
        after_forward_(cells()),
        after_input_(cells()),
        begun_(cells()),
        position_(cells(), 0) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t s = 0; s < next_.size(); ++s)
        while (next_[s] < std::ssize(schedule.actions[s]) && step(s)) goes_on = true;
    }
  }

  /// The most messages that backward of one part may have sent before backward of another has begun with the first of them.
  int32_t under_way(int32_t from_part, int32_t to_part) const {
    const auto taker = static_cast<size_t>(schedule_.stage_of(to_part));
    int32_t most = 1, taken = 0;
    for (int32_t k = 0; k < schedule_.micro_batches; ++k) {
      while (taken < k && position_[cell(to_part, taken)] < begun_[cell(from_part, k)][taker]) ++taken;
      most = std::max(most, k - taken + 1);
    }
    return most;
  }

 private:
  size_t cells() const { return static_cast<size_t>(schedule_.parts()) * static_cast<size_t>(schedule_.micro_batches); }
  size_t cell(int32_t part, int32_t k) const {
    return static_cast<size_t>(part) * static_cast<size_t>(schedule_.micro_batches) + static_cast<size_t>(k);
  }

  bool step(size_t stage) {
    const StageAction& action = schedule_.actions[stage][static_cast<size_t>(next_[stage])];
    const int32_t part = schedule_.part_of(static_cast<int32_t>(stage), action.chunk), k = action.micro_batch;
    const bool is_forward = action.phase == Phase::forward, is_input = makes_input_gradient(action.phase);
    const int32_t needed = is_forward ? part - 1 : is_input ? part + 1 : -1;
    Known& known = known_[stage];
    if (needed >= 0 && needed < schedule_.parts()) {
      const Known& of_needed = (is_forward ? after_forward_ : after_input_)[cell(needed, k)];
      if (of_needed.empty()) return false;
      for (size_t s = 0; s < known.size(); ++s) known[s] = std::max(known[s], of_needed[s]);
    }
    if (is_input) {
      begun_[cell(part, k)] = known;
      position_[cell(part, k)] = next_[stage];
    }
    known[stage] = ++next_[stage];
    if (is_forward) after_forward_[cell(part, k)] = known;
    if (is_input) after_input_[cell(part, k)] = known;
    return true;
  }

  const PipelineSchedule& schedule_;
  std::vector<int32_t> next_;                               // by stage
  std::vector<Known> known_;                                // by stage
  std::vector<Known> after_forward_, after_input_, begun_;  // by part and micro-batch; begun_: backward
  std::vector<int32_t> position_;                           // of backward among its stage's actions
};

}  // namespace

std::vector<int32_t> messages_under_way(const PipelineSchedule& schedule, std::span<const StageLink> links) {
  const Causes causes(schedule);
  std::vector<int32_t> most;
  for (const StageLink& link : links)
    most.push_back(link.carries == StageLink::Carries::gradients ? causes.under_way(link.from_part, link.to_part) : 1);
  return most;
}

}  // namespace st
