#include "team/planned_step.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/os/machine.h"
#include "data/stream.h"
#include "model/borrowed_parameters.h"
#include "model/parameter_copies.h"
#include "passes/scale_loss.h"
#include "recipe/kernel_needs_of.h"
#include "team/find_nan.h"
#include "team/step_plans.h"

namespace st {
namespace {

constexpr size_t kShortPlans = 8;

/// Loss and count so far, which each micro-batch but the first adds to.
void hand_loss_over(const StepSlots& from, const StepSlots& to) {
  to.loss_sum.set(from.loss_sum.get());
  to.loss_count.set(from.loss_count.get());
}

/// Copies the first micro-batch's norm and count to the other executor, after a round in which this rank had a short micro-batch.
void hand_first_over(const StepSlots& from, const StepSlots& to) {
  if (!from.first_norm.exists()) return;
  to.first_norm.set(from.first_norm.get());
  to.first_loss_count.set(from.first_loss_count.get());
}

PlanOptions common_of(const PlanOptions& options) {
  PlanOptions common;
  common.rank = options.rank;
  common.stage = options.stage;
  common.tensor_rank = options.tensor_rank;
  common.shares_masters = options.shares_masters;
  common.parameters_on_host = options.parameters_on_host;
  common.shards_masters = options.shards_masters;
  common.borrows_parameters = options.borrows_parameters;
  return common;
}

/// A short micro-batch adds to the gradients of the full ones, where they are.
void require_same_gradients(const Plan& full, const Plan& rest) {
  const auto gradients_of = [](const Plan& plan) {
    std::vector<std::pair<std::string_view, int64_t>> all;
    for (size_t s = 0; s < plan.program.slots.size(); ++s)
      if (plan.memory.slots[s].arena == Arena::gradients) all.emplace_back(plan.program.slots[s].name, plan.memory.slots[s].offset);
    return all;
  };
  require(gradients_of(full) == gradients_of(rest), Code::internal, "step: a short micro-batch has its gradients at other places");
}

bool is_past(double deadline) { return deadline != Executor::kNoDeadline && os::seconds() >= deadline; }

}  // namespace

PlannedStep::PlannedStep(Model& model, const Recipe& recipe, Storage& storage, Workers& workers, CancelToken& cancelled,
                         const PlanOptions& options, Communicator* ranks, StageLinks* stages, Communicator* tensor)
    : model_(model),
      recipe_(recipe),
      storage_(storage),
      workers_(workers),
      cancelled_(cancelled),
      ranks_(ranks == nullptr ? nullptr : std::make_unique<ExchangeQueue>(*ranks)),
      stages_(stages),
      tensor_(tensor),
      data_ranks_(recipe.data_ranks()),
      rank_(options.rank),
      of_rank_(common_of(options)),
      executor_(
          StepPlans{model, recipe, storage, workers.threads(), options, {ranks, tensor, stages == nullptr ? nullptr : &stages->stages()}}
              .that_fits(),
          storage, workers, &cancelled, ranks_.get(), stages, tensor),
      slots_(executor_),
      tokens_of_micro_batch_(rows_of_loss(model.program(), recipe.batch)),
      makes_gathered_copies_(makes(executor_.plan(), Copy::gathered)) {
  if (stages_ != nullptr) stages_->runs().make_room(executor_.plan().program.sections.size() * static_cast<size_t>(recipe.step_rounds()));
}

void PlannedStep::share_masters(const Model& of) {
  masters_ = &of;
  bind_masters(executor_, of);
}

/// How many of the first `micro_batches` of a step are this rank's.
int64_t PlannedStep::own_of(int64_t micro_batches) const {
  return MicroBatches{.per_step = micro_batches, .ranks = data_ranks_, .rank = rank_}.own();
}

Contributors PlannedStep::contributors_in(int64_t round) const {
  const auto at_most_all = [&](int64_t count) { return static_cast<int>(std::clamp<int64_t>(count, 0, data_ranks_)); };
  return {.in_round = at_most_all(filled() - round * data_ranks_), .in_step = at_most_all(filled())};
}

void PlannedStep::begin(const StepStart& start) {
  full_ = start.rows / recipe_.batch;
  short_rows_ = start.rows % recipe_.batch;
  attempts_ = start.attempts;
  own_full_ = own_of(full_);
  rest_ = short_rows_ == 0 || full_ % data_ranks_ != rank_ ? nullptr : &short_plan(short_rows_);
  tokens_ = micro_batch_tokens() * full_ + micro_batch_tokens() * short_rows_ / recipe_.batch;
  restart();
  if (ranks_) exposed_before_ = ranks_->exposed_seconds();
  slots_.rates.set(0, start.lr);
  slots_.rates.set(1, static_cast<double>(start.number));
  if (!slots_.loss_scale.exists()) return;
  slots_.loss_scale.set(start.loss_scale);
  if (rest_ != nullptr) rest_->slots.loss_scale.set(start.loss_scale);
}

bool PlannedStep::run_until(double deadline, const Bind& bind) {
  try {
    if (is_computing()) {
      {
        const WeightsGate::Reader whole_step(model_.gate());
        take_weights();
        if (!compute(deadline, bind)) return false;
      }
      // Before the update: gradients may be finite all the same, and the weights must be those that made this loss.
      if (recipe_.find_nan && !is_loss_finite()) find_nan(bind);
      if (is_past(deadline)) return false;
    }
    if (!update(deadline)) return false;
    if (recipe_.find_nan && bind && slots_.skipped.get() && slots_.loss_count.get() > 0 && !can_scale_less()) find_nan(bind);
    return true;
  } catch (const std::exception& why) {
    if (ranks_) ranks_->give_up(why.what());
    throw;
  } catch (...) {
    if (ranks_) ranks_->give_up("an unknown error");
    throw;
  }
}

bool PlannedStep::update(double deadline) {
  WeightsGate::Updating weights(model_.gate(), is_updating());
  if (!executor_.run_until(cursor_, executor_.end(), deadline, {})) {
    weights.pause();
    return false;
  }
  meet();
  leave_parameters();
  // The gate counts this update when it ends. A step of a short micro-batch alone has made none of the executor's copies, and between the
  // last micro-batch and the update the host may have changed a weight that the update does not.
  // Nor do they last if the update was skipped: ranks then gather each other's, and one that computed nothing has none.
  const int64_t changes = model_.gate().changes();
  const bool are_made = own_full_ > 0 && !slots_.skipped.get();
  if (are_made && packed_at_ == changes) copies_at_ = changes + 1;
  if (gathered_at_ == changes) gathered_at_ = changes + 1;
  return true;
}

void PlannedStep::throw_end_of_group() {
  if (ranks_) ranks_->wait_for_all();
  for (Communicator* const group : {ranks_ ? &ranks_->ranks() : nullptr, stages_ != nullptr ? &stages_->stages() : nullptr, tensor_})
    if (group != nullptr && group->has_ended()) group->barrier("rows of a step");  // which throws at once
  fail(Code::rank_failed, "step: another rank has ended it");
}

void PlannedStep::restart() {
  if (stages_ != nullptr) stages_->runs().clear();
  gathers_copies_ = false;
  segment_ = Segment::full;
  packed_at_ = -1;
  prepared_ = 0;
  const int64_t complete = full_ / data_ranks_;
  cursor_ = {.end = complete};
  last_cursor_ = {.begin = complete, .end = own_full_};
  rest_cursor_ = {.begin = own_full_, .end = own_full_ + 1};
}

/// As far as the micro-batches go: of stages the last one has it, and tells the others.
bool PlannedStep::is_loss_finite() {
  if (stages_ == nullptr) return std::isfinite(slots_.loss_sum.get());
  Communicator& stages = stages_->stages();
  const bool has_loss = static_cast<bool>(executor_.plan().program.loss_sum);
  const auto size = static_cast<size_t>(stages.size());
  std::vector<uint8_t> is_bad(size, 0);
  uint8_t& own = is_bad[static_cast<size_t>(stages.rank())];
  own = has_loss && !std::isfinite(slots_.loss_sum.get()) ? 1 : 0;
  ranks_->alone([&] { stages.all_gather(&own, is_bad.data(), stages.size(), DType::u8, "loss is finite"); });
  return std::ranges::count(is_bad, 1) == 0;
}

/// Overflow is how a dynamic scale finds its height; at its minimum it has no answer left.
bool PlannedStep::can_scale_less() const {
  return slots_.loss_scale.exists() && recipe_.loss_scale == 0 && slots_.loss_scale.get() > recipe_.loss_scale_minimum;
}

void PlannedStep::find_nan(const Bind& bind) {
  const Program& program = executor_.plan().program;
  std::vector<int32_t> parts = {0};
  if (stages_ != nullptr) {
    const PipelineSchedule schedule = schedule_of(recipe_);
    parts.clear();
    for (int32_t chunk = 0; chunk < schedule.chunks; ++chunk) parts.push_back(schedule.part_of(program.stage, chunk));
  }
  FindNan search(storage_.backend(), attempts_ + 1, program, std::move(parts));
  const auto watch = [&](Executor& executor, bool on) {
    if (!on) return executor.watch({});
    executor.watch([&search, &executor](const Instruction& at, const Call& call) { search.look(executor.plan(), at, call); });
  };
  const auto watch_all = [&](bool on) {
    finding_nan_ = on;
    executor_.keep_copies(false);  // a watcher sees every instruction
    watch(executor_, on);
    if (rest_ != nullptr) watch(rest_->executor, on);
  };
  try {
    watch_all(true);
    restart();
    const WeightsGate::Reader whole_step(model_.gate());
    compute(Executor::kNoDeadline, bind);
  } catch (...) {
    watch_all(false);
    throw;
  }
  watch_all(false);
  search.tell(
      {.data = ranks_ ? &ranks_->ranks() : nullptr, .tensor = tensor_, .stages = stages_ != nullptr ? &stages_->stages() : nullptr});
}

/// Meets the ranks that share the parameters, which the caller's gate guards for all, and makes the copies of weights that are out of date:
/// between two calls the host may write weights, and another trainer of the model may update them.
void PlannedStep::take_weights() {
  if (masters_ != nullptr && recipe_.zero > 0) ranks_->alone([this] { ranks_->ranks().barrier("parameters"); });
  if (masters_ != nullptr) meet_stages();
  const int64_t changes = model_.gate().changes();
  if (std::exchange(gathers_copies_, false)) {
    gathered_at_ = -1;
    executor_.make_copies({Copy::gathered});
    gathered_at_ = changes;
  }
  if (packed_at_ < 0) {
    executor_.keep_copies(copies_at_ == changes);
    copies_at_ = -1;
  }
  if (packed_at_ >= 0 && packed_at_ != changes) executor_.make_copies({Copy::of_step, Copy::lasting});
  packed_at_ = changes;
}

bool PlannedStep::compute(double deadline, const Bind& bind) {
  while (segment_ != Segment::update) {
    if (const Rounds rounds = this->rounds(); rounds.executor != nullptr) {
      const auto before = [&](int64_t round) { return prepare(rounds, round, bind); };
      const size_t end = rounds.executor->begin_of_update();
      // A reference: std::function would allocate for the captures.
      if (!rounds.executor->run_until(*rounds.cursor, end, deadline, std::ref(before))) return false;
    }
    end_segment();
    if (segment_ == Segment::rest && rest_ != nullptr && own_full_ > 0 && is_past(deadline)) return false;
  }
  return true;
}

/// The micro-batches to compute now; no executor: the step has none in this segment.
PlannedStep::Rounds PlannedStep::rounds() {
  const bool is_rest = segment_ == Segment::rest;
  if (is_rest ? rest_ == nullptr : segment_ == Segment::last && last_cursor_.begin >= last_cursor_.end) return {};
  if (is_rest) return {&rest_->executor, &rest_->slots, &rest_cursor_, short_rows_};
  return {&executor_, &slots_, segment_ == Segment::full ? &cursor_ : &last_cursor_, recipe_.batch};
}

bool PlannedStep::prepare(const Rounds& rounds, int64_t round, const Bind& bind) {
  const int64_t first_row = (round * data_ranks_ + rank_) * recipe_.batch;
  if (round >= prepared_ && !bind(first_row, rounds.rows, *rounds.executor)) return false;  // a plan may return to a micro-batch in flight
  prepared_ = std::max(prepared_, round + 1);
  rounds.executor->set_contributors(contributors_in(round));
  if (!rounds.slots->counters.exists()) return true;
  rounds.slots->counters.set(0, attempts_);
  rounds.slots->counters.set(1, first_row);
  return true;
}

void PlannedStep::end_segment() {
  if (segment_ == Segment::full) {
    segment_ = Segment::last;
  } else if (segment_ == Segment::last) {
    segment_ = Segment::rest;
    if (rest_ != nullptr) hand_loss_over(slots_, rest_->slots);
  } else {
    if (rest_ != nullptr) hand_loss_over(rest_->slots, slots_);
    if (rest_ != nullptr && own_full_ == 0 && slots_.first_norm.exists()) hand_first_over(rest_->slots, slots_);
    if (ranks_ != nullptr) run_without_rows();
    meet();
    segment_ = Segment::update;
  }
}

/// Where all parameters lie once for the ranks of this process, and none of them gathers what others have updated, rank 0 holds the gate
/// until all have read what it guards, or written.
void PlannedStep::meet() {
  if (masters_ != nullptr) meet_stages();
  if (masters_ != nullptr && recipe_.zero == 3) ranks_->alone([this] { ranks_->ranks().barrier("parameters"); });
}

/// Rank 0 holds the gate until all have written.
void PlannedStep::leave_parameters() {
  if (whole_ == nullptr) return;
  if (!slots_.skipped.get()) give_parameters(executor_, *whole_);
  const auto meet_along = [this](Communicator& axis) { ranks_->alone([&] { axis.barrier("parameters"); }); };
  if (tensor_ != nullptr) meet_along(*tensor_);
  meet_along(ranks_->ranks());
  if (stages_ != nullptr) meet_along(stages_->stages());
}

void PlannedStep::meet_stages() {
  if (stages_ != nullptr) ranks_->alone([this] { stages_->stages().barrier("parameters"); });
}

/// Other ranks have micro-batches in rounds in which this one has none; and what a step does once it may not have done.
void PlannedStep::run_without_rows() {
  using RunByAll = Executor::RunByAll;
  const int64_t own = own_full_ + (rest_ == nullptr ? 0 : 1), last = executor_.plan().micro_batches - 1;
  for (int64_t round = own; round * data_ranks_ < filled(); ++round)
    executor_.run_without_rows(round, contributors_in(round), round == last ? RunByAll::both : RunByAll::in_round);
  if (last * data_ranks_ >= filled()) executor_.run_without_rows(last, contributors_in(last), RunByAll::in_step);
}

std::optional<std::vector<RegionId>> PlannedStep::scopes_for_all() const {
  if ((recipe_.zero < 3 && recipe_.stages == 1 && recipe_.tensor == 1) || recipe_.ranks == 1 || recipe_.recompute != "auto")
    return std::nullopt;
  std::vector<RegionId> scopes;
  for (const RecomputedScope& scope : executor_.plan().recompute.scopes) scopes.push_back(scope.region);
  return scopes;
}

PlannedStep::Short& PlannedStep::short_plan(int64_t rows) {
  if (const auto found = short_.find(rows); found != short_.end()) return *found->second;
  const Program& whole = executor_.plan().program;
  const int64_t spare = model_.context().spare_memory();
  PlanOptions options = of_rank_;
  const auto scopes = scopes_for_all();
  if (scopes) options.recompute_scopes = &*scopes;
  options.part_starts = &whole.part_starts;
  if (spare != PlanOptions::kUnlimited) {
    options.memory = spare;
    for (const Arena of_step : {Arena::gradients, Arena::optimizer}) options.memory += executor_.plan().memory.on_device(of_step);
  }
  Plan plan = plan_short_micro_batch(model_.program(), recipe_, rows, whole.loss_seed, kernel_needs(storage_.backend(), workers_.threads()),
                                     options);
  require_same_gradients(executor_.plan(), plan);
  int64_t need = Executor::input_bytes(plan, storage_.backend(),
                                       {ranks_ ? &ranks_->ranks() : nullptr, tensor_, stages_ == nullptr ? nullptr : &stages_->stages()});
  for (int32_t a = 0; a < kArenas; ++a)
    if (!Storage::holds(static_cast<Arena>(a))) need += plan.memory.of(static_cast<Arena>(a));
  model_.context().require_memory("step: a micro-batch with fewer rows than the recipe's", need);
  auto made = std::make_unique<Short>(std::move(plan), storage_, workers_, cancelled_, ranks_.get(), stages_, tensor_);
  if (masters_ != nullptr) bind_masters(made->executor, *masters_);
  if (of_rank_.shards_masters) bind_copies(made->executor, executor_);
  if (short_.size() == kShortPlans) short_.erase(short_.begin());
  return *short_.emplace(rows, std::move(made)).first->second;
}

int64_t PlannedStep::own_bytes() const {
  int64_t sum = st::own_bytes(executor_);
  for (const auto& [rows, plan] : short_) sum += st::own_bytes(plan->executor);
  return sum;
}

}  // namespace st
