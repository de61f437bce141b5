#include "planner/measured_steps.h"

#include <algorithm>
#include <limits>

#include "base/os/machine.h"
#include "models/builtin.h"
#include "planner/rank_clock.h"
#include "train/trainer.h"

namespace st {
namespace {

using InstructionKind = Instruction::Kind;

OpTime message_of(const Plan& plan, const Instruction& receive, double seconds) {
  const ExchangePlan& message = plan.exchanges[static_cast<size_t>(receive.exchange)];
  return {text("send.", name_of(message.dtype)), {.bytes = static_cast<double>(message.elements * bytes_of(message.dtype))}, seconds};
}

double shortest_of(const std::vector<double>& times) { return times.empty() ? 0 : *std::ranges::min_element(times); }

int64_t classes_of(const StepChoice& choice) {
  return choice.model == "mlp" ? mlp_options(choice.options).outputs : gpt_options(choice.options).vocabulary;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// A step's rows for every input of a model: numbers in [-1, 1), or tokens and classes.
class MeasuredSteps::Rows {
 public:
  Rows(const Program& model, int64_t rows, int64_t classes) {
    for (const Slot& slot : model.slots) {
      if (slot.role != Role::input) continue;
      const Shape shape = slot.type.shape.bind(rows);
      const auto drawn = [&, i = int64_t{0}]() mutable { return (i++ * 7919 + 104729) % 65537; };
      const void* data = nullptr;
      if (slot.type.dtype == DType::i32) {
        auto& memory = whole_.emplace_back(static_cast<size_t>(shape.elements()));
        std::ranges::generate(memory, [&, draw = drawn]() mutable { return static_cast<int32_t>(draw() % classes); });
        data = memory.data();
      } else {
        auto& memory = real_.emplace_back(static_cast<size_t>(shape.elements()));
        std::ranges::generate(memory, [&, draw = drawn]() mutable { return static_cast<float>(draw()) / 32768.5F - 1; });
        data = memory.data();
      }
      views_.push_back(plain_view(slot.name, slot.type.dtype, shape, data));
    }
  }
  std::span<const HostView> views() const { return views_; }

 private:
  std::vector<std::vector<float>> real_;
  std::vector<std::vector<int32_t>> whole_;
  std::vector<HostView> views_;
};

struct MeasuredSteps::Parts {
  Parts(const std::shared_ptr<Context>& context, const StepChoice& choice)
      : model(std::make_shared<Model>(context, build_builtin(choice.model, choice.options), 1)),
        trainer(model, choice.recipe, nullptr),
        rows(model->program(), trainer.rows_per_step(), classes_of(choice)),
        plans(trainer.plans()),
        micro_batches(trainer.recipe().step_micro_batches()),
        clocks(plans.size()),
        times(plans.size()) {
    for (size_t rank = 0; rank < plans.size(); ++rank) {
      clocks[rank].ended.reserve(plans[rank]->instructions.size());
      clocks[rank].order.reserve(plans[rank]->instructions.size());
    }
  }

  void watch(bool is_watched) {
    has_watch = is_watched;
    trainer.watch([&](size_t rank) -> Executor::Watch {
      if (!is_watched) return {};
      return [&clock = clocks[rank]](const Instruction& at, const Call&) {
        clock.order.push_back(at);
        clock.ended.push_back(os::seconds());
      };
    });
  }
  void begin_step() {
    for (RankClock& clock : clocks) {
      clock.order.clear();
      clock.ended.clear();
      clock.began = os::seconds();
    }
  }
  void keep(double took) {
    for (size_t rank = 0; rank < clocks.size(); ++rank) {
      const RankClock& clock = clocks[rank];
      auto& kept = times[rank];
      if (kept.size() != clock.order.size()) kept.assign(clock.order.size(), {});
      for (size_t i = 0; i < clock.order.size(); ++i)
        if (clock.order[i].kind != InstructionKind::receive) kept[i].push_back(clock.seconds(i));
      for (const MessageTime& message : messages_waited_for(plans, clocks, rank)) kept[message.receive].push_back(message.seconds);
    }
    const RankClock& own = clocks[0];
    outside.push_back(own.ended.empty() ? took : took - (own.ended.back() - own.ended.front()));
  }

  /// By step, the shortest time over the ranks of an exchange that all run.
  std::vector<double> of_last_to_come(const Instruction& at) const {
    std::vector<double> shortest;
    for (size_t rank = 0; rank < clocks.size(); ++rank) {
      const std::vector<Instruction>& order = clocks[rank].order;
      const auto found = std::ranges::find(order, at);
      if (found == order.end()) continue;
      const std::vector<double>& own = times[rank][static_cast<size_t>(found - order.begin())];
      shortest.resize(std::max(shortest.size(), own.size()), std::numeric_limits<double>::infinity());
      for (size_t step = 0; step < own.size(); ++step) shortest[step] = std::min(shortest[step], own[step]);
    }
    return shortest;
  }

  std::shared_ptr<Model> model;
  Trainer trainer;
  Rows rows;
  std::vector<const Plan*> plans;  // by rank
  int64_t micro_batches;
  std::vector<RankClock> clocks;                        // of the current step, by rank
  std::vector<std::vector<std::vector<double>>> times;  // by rank and instruction: of each step kept
  bool has_run = false;
  bool has_watch = false;
  std::vector<double> whole, watched, outside;
};

MeasuredSteps::MeasuredSteps(const std::shared_ptr<Context>& context, const StepChoice& choice)
    : parts_(std::make_unique<Parts>(context, choice)) {}

MeasuredSteps::~MeasuredSteps() = default;

void MeasuredSteps::run(int64_t steps, bool is_watched) {
  constexpr int64_t kFirstTime = 2;  // memory is touched for the first time, and copies of weights that last are made
  Parts& parts = *parts_;
  if (is_watched != parts.has_watch) parts.watch(is_watched);
  const int64_t before = parts.has_run ? 1 : kFirstTime;
  parts.has_run = true;
  for (int64_t step = -before; step < steps; ++step) {
    parts.begin_step();
    const double began = os::seconds();
    parts.trainer.step(parts.rows.views());
    const double took = os::seconds() - began;
    if (step < 0) continue;
    (is_watched ? parts.watched : parts.whole).push_back(took);
    if (is_watched) parts.keep(took);
  }
}

int64_t MeasuredSteps::count() const { return static_cast<int64_t>(parts_->watched.size()); }
int64_t MeasuredSteps::memory() const { return memory_of(*parts_->plans[0]); }
bool MeasuredSteps::has_stages() const { return parts_->plans[0]->program.mesh.stage > 1; }
double MeasuredSteps::step() const { return median_of(parts_->whole.empty() ? parts_->watched : parts_->whole); }
double MeasuredSteps::watched_step() const { return median_of(parts_->watched); }
double MeasuredSteps::before_second() const { return median_of(parts_->outside); }

std::vector<OpTime> MeasuredSteps::ops(bool of_all) const {
  std::vector<OpTime> all;
  for (size_t rank = 0; rank < (of_all ? parts_->clocks.size() : 1); ++rank) {
    const RankClock& clock = parts_->clocks[rank];
    const std::vector<std::vector<double>>& times = parts_->times[rank];
    const Plan& plan = *parts_->plans[rank];
    int32_t before = -1;
    bool was_update = false;
    for (size_t i = 0; i < times.size(); ++i) {
      const Instruction& at = clock.order[i];
      const bool is_update = plan.program.sections[static_cast<size_t>(at.section)].phase == Phase::update;
      const bool is_first = at.micro_batch != before || is_update != was_update;
      before = at.micro_batch;
      was_update = is_update;
      if (at.is_copy() || at.is_wait() || at.kind == InstructionKind::send) continue;
      if (at.kind == InstructionKind::receive) {
        if (!times[i].empty()) all.push_back(message_of(plan, at, median_of(times[i])));
        continue;
      }
      const bool is_shared = at.sends();
      // Stages make the same collectives at different places.
      if (is_shared && (rank > 0 || plan.program.mesh.stage > 1)) continue;
      all.push_back({rate_name(plan, at), work_of(plan, at, parts_->micro_batches),
                     is_shared ? shortest_of(parts_->of_last_to_come(at)) : median_of(times[i]), is_first});
    }
  }
  return all;
}

}  // namespace st
