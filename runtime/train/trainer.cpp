#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/os/machine.h"
#include "recipe/can_offload.h"
#include "recipe/schedule_choice.h"

namespace st {

Trainer::~Trainer() {
  if (open_ && planned().is_updating()) {
    try {
      planned().run_until(Executor::kNoDeadline, {});
    } catch (...) {  // the gate was given back all the same
    }
  }
  ranks_->groups().end_links();
}

// --- a step, whole or in slices

StepReport Trainer::step(std::span<const HostView> batch) {
  begin_call("step");
  begin_step_on(batch);
  go_on(batch, Executor::kNoDeadline);
  return finish_step();
}

StepReport Trainer::step() {
  begin_call("step");
  begin_step_on_data();
  go_on(std::nullopt, Executor::kNoDeadline);
  return finish_step();
}

std::optional<StepReport> Trainer::advance(std::span<const HostView> batch, double deadline) {
  if (!open_) begin_call("advance");
  cancelled_.begin();
  const auto check_again = [&] {
    if (!planned().is_computing() && !recipe_.find_nan) return;  // find_nan may ask for the rows again
    check(!open_->from_data, "advance: this step was begun with the data's rows; continue with n = 0 and NULL");
    ranks_->own().inputs().check(batch, open_->rows);
  };
  if (open_ && planned().is_updating()) {
    check_again();  // what has begun to update is not undone
  } else {
    undoing_on_error([&] { open_ ? check_again() : begin_step_on(batch); });
  }
  if (!go_on(batch, deadline)) return std::nullopt;
  return finish_step();
}

std::optional<StepReport> Trainer::advance(double deadline) {
  if (!open_) {
    begin_call("advance");
    begin_step_on_data();
  }
  cancelled_.begin();
  if (!open_->from_data && (planned().is_computing() || recipe_.find_nan)) {
    const bool is_undone = !planned().is_updating();
    abandon();
    fail(Code::invalid_argument, text("advance: this step was begun with the host's batch; continue with the same one",
                                      is_undone ? ". The step was rolled back" : ""));
  }
  if (!go_on(std::nullopt, deadline)) return std::nullopt;
  return finish_step();
}

void Trainer::require_whole_step(const char* call) {
  require_no_open_step(call);
  require(!has_torn_state_, Code::wrong_state, call,
          ": weights and optimizer state are from different steps: an update failed, or a resume could not be rolled back; resume from a "
          "checkpoint");
}

void Trainer::require_no_open_step(const char* call) {
  cancelled_.begin();
  if (!open_ && !host_step_->is_open()) return;
  const bool updates = open_ && planned().is_updating();
  if (!updates && cancelled_.take()) {
    undo();
    fail(Code::cancelled, text(call, ": the current step was cancelled; the state is that of the last whole step"));
  }
  const char* way_out = open_ ? "; call st_trainer_advance until it is done, or st_trainer_cancel before its update has begun"
                              : "; end it with st_trainer_apply or st_trainer_cancel";
  fail(Code::wrong_state, text(call, ": a step is in progress", way_out));
}

void Trainer::begin_call(const char* call) {
  require_whole_step(call);
  require(
      has_loss(), Code::wrong_state, call,
      ": the graph has no loss; mark one with st_graph_loss, or train with st_trainer_forward, st_trainer_backward and st_trainer_apply");
}

void Trainer::begin_step_on(std::span<const HostView> batch) {
  if (group_ != nullptr) return begin_step_on_own(batch);
  const BatchBinding& inputs = ranks_->own().inputs();
  const int64_t rows = inputs.rows_of(batch, rows_per_step());
  inputs.check(batch, rows);
  begin_step(rows, false);
}

/// A rank that is to have no rows may be given any, or none.
void Trainer::begin_step_on_own(std::span<const HostView> batch) {
  const BatchBinding& inputs = ranks_->own().inputs();
  const int64_t most = ranks_->own_rows();
  const int64_t own = most == 0 ? 0 : inputs.rows_of(batch, most, 0);
  if (own > 0) inputs.check(batch, own);
  begin_step(own, false);
}

void Trainer::begin_step_on_data() {
  require(data_ != nullptr, Code::wrong_state,
          "step: this trainer has no data; create it with an st_data, or call st_trainer_step with a batch");
  begin_step(rows_per_step(), true);
}

void Trainer::begin_step(int64_t rows, bool from_data) {
  const double lr = learning_rate();
  if (group_ != nullptr) {
    const int64_t given = ranks_->rows_of_all({.attempts = attempts_,
                                               .items = items_taken_,
                                               .lr = lr,
                                               .loss_scale = loss_scale(),
                                               .rows = from_data ? RankReport::kFromData : rows,
                                               .lacks_copies = planned().lacks_copies() ? 1 : 0});
    if (!from_data) rows = given;
  }
  check(rows > 0, "step: no rank was given rows");
  gradients_.executor = nullptr;
  ranks_->begin({.lr = lr, .number = updates_ + 1, .attempts = attempts_, .rows = rows, .loss_scale = loss_scale()});
  open_ = OpenStep{.lr = lr, .rows = rows, .from_data = from_data};
}

double Trainer::learning_rate() const {
  if (!host_schedule_) return schedule_.at(updates_);
  const double lr = host_schedule_(updates_);
  require(std::isfinite(lr) && lr >= 0, Code::callback, "step: the host's learning rate after ", updates_,
          " successful steps must be a finite number of at least 0, got ", lr);
  return lr;
}

bool Trainer::go_on(std::optional<std::span<const HostView>> batch, double deadline) {
  const double start = os::seconds();
  try {
    const bool is_done = ranks_->run_until(deadline, {.batch = batch, .are_of_rank = group_ != nullptr, .items = items_taken_});
    open_->seconds += os::seconds() - start;
    return is_done;
  } catch (const Error& error) {
    note_mixed_state(are_pieces_mixed());
    if (error.code() == Code::cancelled) static_cast<void>(cancelled_.take());  // it was seen in an exchange
    undo();
    throw;
  } catch (...) {
    note_mixed_state(are_pieces_mixed());
    undo();
    throw;
  }
}

/// After an error in a step: pieces that an update has changed are nowhere as they were.
bool Trainer::are_pieces_mixed() const { return recipe_.ranks > 1 && is_in_pieces() && ranks_->has_updated(); }

void Trainer::note_mixed_state(bool is_mixed) {
  has_torn_state_ = has_torn_state_ || is_mixed;
  if (has_torn_state_ && model_->is_sharded()) model_->set_mixed(true);  // another trainer of it would not know
}

void Trainer::abandon() {
  if (!open_ || !planned().is_updating()) undo();
}

void Trainer::undo() {
  if (open_ && open_->from_data) ranks_->rewind(items_taken_);  // to the first row of the step that did not happen
  open_.reset();
  host_step_->forget();
}

StepReport Trainer::finish_step() {
  const OpenStep done = *open_;
  open_.reset();
  if (done.from_data) items_taken_ += done.rows;
  const PlannedStep& step = planned();
  gradients_ = {&step.executor(), step.unit()};
  const StepSlots& slots = step.slots();
  StepReport report = report_of(slots, done.lr, done.seconds, step.tokens());
  report.loss = last_loss_ = slots.loss_sum.get() / slots.loss_count.get();
  if (!report.skipped) add_noise(done.rows);
  report.gradient_noise_scale = noise_.scale();
  report_exchange(report);
  return report;
}

void Trainer::report_exchange(StepReport& report) const {
  if (recipe_.ranks == 1) return;
  RankClocks& clocks = ranks_->clocks();
  clocks.take();
  report.exchange_milliseconds = clocks.exchange_seconds() * 1e3;
  report.exchange_hidden = clocks.hidden();
  report.straggler = clocks.straggler();
}

/// A micro-batch that counts no row has no mean, and one that is all of the step tells nothing.
void Trainer::add_noise(int64_t rows) {
  const StepSlots& slots = planned().slots();
  if (!slots.first_norm.exists() || rows <= recipe_.batch || slots.first_loss_count.get() == 0) return;
  const double unit_of_first = planned().unit() / slots.loss_count.get() * slots.first_loss_count.get();
  noise_.add(static_cast<double>(recipe_.batch), slots.first_norm.get() / unit_of_first, static_cast<double>(rows), slots.grad_norm.get());
}

StepReport Trainer::report_of(const StepSlots& slots, double lr, double seconds, int64_t tokens) {
  StepReport report;
  report.skipped = slots.skipped.get();
  report.grad_norm = slots.grad_norm.get();
  report.lr = lr;
  report.loss_scale = loss_scale();
  // Last of a step: what unscaled it is the scale that its loss was scaled with. A step that counted no row says nothing of overflow.
  if (scaler_ && gradients_.unit != 0) scaler_->update(report.skipped);
  report.step = ++attempts_;
  warn_past_schedule(lr);
  others_change_too();
  if (average_ && !report.skipped) average_->follow();
  if (!report.skipped && ++updates_ % std::max<int64_t>(recipe_.trim_every, 1) == 0 && recipe_.trim_every > 0) {
    model_->context().trim();
    trim();  // a host's handle of this trainer is in use now, and the context passes it over
  }
  report.tokens = tokens_ += tokens;
  report.milliseconds = seconds * 1e3;
  report.tokens_per_second = static_cast<double>(tokens) / seconds;
  report.memory_bytes = memory_bytes();
  return report;
}

/// Once: a run that is longer than its schedule trains on at the last rate, which for most is 0.
void Trainer::warn_past_schedule(double lr) {
  if (host_schedule_ || step_past_schedule_ > 0 || !schedule_.has_ended(updates_)) return;
  step_past_schedule_ = attempts_;
  model_->context().options().log.warning("schedule", "lr_schedule ", recipe_.lr_schedule, " ended after lr_steps ", recipe_.lr_steps,
                                          " successful steps; from step ", attempts_, " on the learning rate stays ", lr,
                                          "; set lr_steps to the run's length, or end the run");
}

// --- looking

/// The executors of all ranks of this process, by rank.
std::vector<const Executor*> Trainer::executors() const {
  if (has_loss()) return ranks_->executors();
  return {&host_step_->executor()};
}

void Trainer::watch(const std::function<Executor::Watch(size_t rank)>& of_rank) { ranks_->watch(of_rank); }

std::vector<const Plan*> Trainer::plans() const {
  std::vector<const Plan*> all;
  for (const Executor* executor : executors()) all.push_back(&executor->plan());
  return all;
}

std::span<const StepTimes> Trainer::timeline() const { return ranks_->clocks().timeline().steps(); }

PipelineTimes Trainer::pipeline_times() const { return ranks_->clocks().pipeline_times(); }

std::string Trainer::timeline_json() const { return ranks_->clocks().timeline_json(); }

std::vector<int64_t> Trainer::sent_bytes() const { return ranks_->sent_bytes(); }

void Trainer::set(std::string_view key, std::string_view json) {
  static_cast<void>(recipe_.get(key));  // throws for an unknown key, names the nearest
  require(
      is_schedule_key(key), Code::unsupported, "trainer: ", key,
      " is fixed in the plan; only lr, warmup, lr_schedule and the keys of schedules can be set. Make a new trainer with another recipe");
  Recipe changed = recipe_;
  changed.set(key, json);
  schedule_ = schedule_choice(changed);
  recipe_ = std::move(changed);
  step_past_schedule_ = 0;
}

Trainer::LearningRate Trainer::set_schedule(LearningRate rate) { return std::exchange(host_schedule_, std::move(rate)); }

Evaluation Trainer::evaluate(const std::shared_ptr<const Dataset>& data) {
  if (open_ || has_torn_state_) require_whole_step("evaluate");
  cancelled_.begin();
  return evaluator_->run(data);
}

/// Between a forward and its apply nothing has changed yet.
WeightAverage& Trainer::average_for(const char* call) {
  if (open_ || has_torn_state_) require_whole_step(call);
  require(average_.has_value(), Code::wrong_state, call,
          ": no average of the weights is kept, because the recipe's ema_decay is 0; make the trainer with an ema_decay, such as 0.999");
  return *average_;
}

Evaluation Trainer::evaluate_average(const std::shared_ptr<const Dataset>& data) {
  WeightAverage& average = average_for("evaluate_average");
  cancelled_.begin();
  return evaluator_->run(data, average.places());
}

void Trainer::average(std::string_view parameter, const HostView& to, ShardedModelCall* collective) {
  average_for("average").get(parameter, to, collective);
}

void Trainer::use_average(ShardedModelCall* collective) {
  require_whole_step("use_average");
  WeightAverage& average = average_for("use_average");
  if (collective != nullptr) collective->agree("use of the averages");
  others_change_too();
  average.put_in_model();
}

int64_t Trainer::memory_bytes() const {
  // Besides what its ranks have.
  const bool has_whole_too = !model_->is_sharded() && threads_have_copies(mesh_of(recipe_), recipe_.zero, options_.parameters_on_host);
  return ranks_->memory_bytes() + evaluator_->own_bytes() + host_step_->own_bytes() + (has_whole_too ? whole_.memory_bytes() : 0);
}

void Trainer::trim() {
  evaluator_->trim();
  if (average_) average_->trim();
  if (!open_) ranks_->trim();
}

}  // namespace st
