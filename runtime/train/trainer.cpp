#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/os/machine.h"
#include "comm/rank_texts.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/schedule_choice.h"
#include "train/input_fields.h"
#include "train/product_tuner.h"
#include "train/rank_agreement.h"
#include "train/rank_share.h"

namespace st {

Trainer::Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options,
                 Communicator* ranks)
    : model_(std::move(model)),
      recipe_(ranks == nullptr ? std::move(recipe) : on_ranks(std::move(recipe), ranks->size())),
      options_(options),
      cancelled_(&model_->context().cancels()),
      schedule_(schedule_choice(recipe_)),
      scaler_(recipe_.loss_scaler()),
      storage_(model_->context().backend()),
      whole_(model_->context().backend()),
      inputs_(model_->program(), inputs_read_by(model_->program()), model_->context().memory()) {
  Context& context = model_->context();
  const std::string& device = context.options().device;
  check(recipe_.device == device, "trainer: the recipe has device ", recipe_.device, ", but the model's context has ", device,
        "; make the context with the recipe's device");
  const Mesh mesh = mesh_of(recipe_);
  const bool has_tensor_threads = mesh.tensor > 1 && ranks == nullptr, is_split = mesh.tensor > 1 || mesh.stage > 1;
  if (is_split) recipe_.ranks = mesh.ranks();
  if (ranks != nullptr && recipe_.ranks > 1) check_mesh(mesh, ranks->size());
  check(recipe_.batch > 0, "trainer: the recipe's batch is auto; call with_batch_decided() first");
  check(!recipe_.gradient_noise_scale || recipe_.step_micro_batches() > 1,
        "recipe: gradient_noise_scale needs at least 2 micro-batches per step, got 1 of ", recipe_.batch,
        " rows; use accumulate 2 or more with a smaller batch");
  for (const std::string& note : recipe_.notes) context.options().log.info("recipe", note);
  if (data) check_input_fields(model_->program(), data->fields(), recipe_.batch);
  const int threads =
      recipe_.threads > 0
          ? static_cast<int>(recipe_.threads)
          : std::max(1, context.threads() / (ranks != nullptr ? ranks_in_process(*ranks) : static_cast<int>(recipe_.ranks)));
  data_ = std::move(data);
  workers_ = context.make_workers(threads);
  if (ranks != nullptr) {
    const MeshPosition at = position_of(mesh, ranks->rank());
    options_.rank = at.data;
    options_.tensor_rank = at.tensor;
    options_.stage = at.stage;
  }
  const int64_t data_ranks = recipe_.data_ranks();
  if (const int64_t idle = data_ranks - recipe_.step_micro_batches(); idle > 0 && (ranks == nullptr || ranks->rank() == 0))
    context.options().log.warning("recipe", "a step has ", data_ranks - idle, " micro-batches on ", data_ranks, " ranks, so ", idle,
                                  idle == 1 ? " computes" : " compute", " none; give more micro_batches, or fewer ranks");
  const bool has_loss = static_cast<bool>(model_->program().loss_sum);
  const bool is_zero_3 = recipe_.zero == 3, is_late = context.options().late_parameters;
  options_.shards_masters =
      ranks != nullptr && data_ranks > 1 && (recipe_.zero == 1 || recipe_.zero == 2) && has_loss && is_late && recipe_.precision != "fp32";
  const bool keeps_pieces = ranks != nullptr && recipe_.ranks > 1 && (is_zero_3 || options_.shards_masters || is_split);
  if (ranks != nullptr && recipe_.ranks > 1) {  // what they exchange from here on goes by it
    std::vector<RankFact> facts = {{"zero", recipe_.get("zero")}, {"stages", recipe_.get("stages")}, {"tensor", recipe_.get("tensor")}};
    if (is_zero_3) facts.push_back({"recompute", recipe_.get("recompute")});
    if (recipe_.zero == 1 || recipe_.zero == 2) {
      facts.push_back({"precision", recipe_.get("precision")});
      facts.push_back({"late_parameters", options_.shards_masters ? "1" : "0"});  // where they tell
    }
    require_agreement(*ranks, facts);
  }
  const KernelNeeds needs = kernel_needs(profile_of(context.backend(), threads));
  const auto plan_with = [&](const PlanOptions& with) {
    return has_loss ? plan_training(model_->program(), recipe_, needs, with)
                    : plan_host_loss(model_->program(), recipe_, false, nullptr, needs, with);
  };
  if (keeps_pieces) {
    const Plan plan = plan_with(options_);
    std::vector<RankFact> facts = run_facts(recipe_, training_state(), plan);
    facts.push_back({"weights", model_->weights_fact()});
    require_agreement(*ranks, facts);  // before weights are given up
    // On all, or on none: what one gives up it would not get back. And before any looks at the memory that there is.
    meeting_once(*ranks, "trainer", [&](const auto& meet) { model_->keep_pieces(plan.program, [&] { meet(nullptr); }); });
    model_->set_sharding(ranks->sequence(), sharding_keys());
    has_torn_state_ = model_->has_torn_state();
  }
  if (!has_tensor_threads) storage_.share(keeps_pieces ? model_->piece_storage() : model_->storage(), Arena::parameters);
  whole_.share(keeps_pieces ? model_->piece_storage() : model_->storage(), Arena::parameters);
  const std::array<bool, kArenas> in_file = recipe_.arenas_in_file();
  storage_.keep_in_file(in_file, recipe_.offload_folder);
  if (in_file[static_cast<size_t>(Arena::parameters)]) model_->move_to_file(recipe_.offload_folder);
  if (ranks != nullptr) options_.memory = memory_part(*ranks, context);
  options_.shares_masters = ranks == nullptr && recipe_.ranks > 1 && !has_tensor_threads;
  GemmContest contest{.tiles = recipe_.tune};
  if (recipe_.gemm_library == "auto") contest.libraries = context.gemm_libraries();
  if (contest.tiles || !contest.libraries.empty()) options_.tiles = measured_tiles(context, *workers_, contest);
  if (recipe_.ranks > 1 && (has_loss || ranks != nullptr)) {
    const auto is_cancelled = [this] {
      const bool is_by_host = host_step_ && host_step_->is_open();
      return cancelled_.is_set() && (is_by_host ? !host_step_->is_updating() : train_ && train_->is_computing());
    };
    team_ = std::make_unique<RankTeam>(RankTeam::Parts{*model_, recipe_, storage_, is_cancelled, data_, threads, ranks}, options_);
  }
  RankGroups* const groups = team_ ? &team_->groups() : nullptr;
  if (keeps_pieces && (is_zero_3 || is_split)) {  // of steps of both kinds
    recomputed_ = recomputed_by_all(*ranks, recipe_, options_, plan_with);
    if (recomputed_) options_.recompute_scopes = &*recomputed_;
  }
  if (has_loss) {
    PlanOptions own = options_;
    const auto scopes = team_ && own.recompute_scopes == nullptr ? team_->scopes_for_all() : std::nullopt;
    if (scopes) own.recompute_scopes = &*scopes;
    own.borrows_parameters = recipe_.stages > 1 && ranks == nullptr && !has_tensor_threads;
    train_ = std::make_unique<PlannedStep>(*model_, recipe_, storage_, *workers_, cancelled_, own, groups ? &groups->data(0) : nullptr,
                                           groups ? groups->stages(0) : nullptr, groups ? groups->tensor(0) : nullptr);
    if (has_tensor_threads) {
      train_->leave_parameters_in(*model_);
      team_->keep_pieces_in(train_->executor());
    }
    if (options_.shares_masters) train_->share_masters(*model_);
    if (data_ && options_.rank < recipe_.step_micro_batches())
      feed_ = std::make_unique<Feed>(
          data_, static_cast<uint64_t>(recipe_.seed),
          MicroBatches{.rows = recipe_.batch, .per_step = recipe_.step_micro_batches(), .ranks = data_ranks, .rank = options_.rank},
          items_taken_, context.memory());
    if (ranks != nullptr && groups && groups->stages(0) != nullptr)
      groups->connect(*groups->stages(0), train_->executor().plan().program.links);
  } else {
    require_host_loss_fits("trainer");
  }
  std::optional<HostLoss::OtherAxes> others;
  if (ranks != nullptr && groups && is_split)
    others.emplace(HostLoss::OtherAxes{groups->all(), groups->stages(0) == nullptr ? nullptr : &groups->stages(0)->stages(),
                                       groups->tensor(0), std::bind_front(&RankGroups::connect, groups)});
  host_step_ = std::make_unique<HostLossStep>(HostLossStep::Parts{*model_, recipe_, storage_, *workers_, cancelled_, inputs_.wanted(),
                                                                  train_.get(), groups ? &groups->data(0) : nullptr, std::move(others)},
                                              options_);
  if (ranks != nullptr && team_) require_agreement(*ranks, run_facts(recipe_, training_state(), plan()));
  if (ranks != nullptr && is_split) require_agreement_along_data(*ranks, mesh, collective_facts(plan()));
  if (is_sharded()) others_ = pieces_of_others(groups->all(), executor());
  if (recipe_.ema_decay > 0) {
    WeightAverage::Read read;
    if (is_sharded()) read = std::bind_front(&Trainer::read_state, this);
    average_.emplace(*model_, state_tensors(), std::move(read));
  }
  evaluator_ = std::make_unique<Evaluator>(*model_, whole_, *workers_, cancelled_, recipe_.batch, average_.has_value());
  if (keeps_pieces) evaluator_->gather_from(*ranks, plan().program);
}

Trainer::~Trainer() {
  if (open_ && train_->is_updating()) {
    try {
      train_->run_until(Executor::kNoDeadline, {});
    } catch (...) {  // the gate was given back all the same
    }
  }
  if (team_) team_->groups().end_links();
}

// --- a step, whole or in slices

StepReport Trainer::step(std::span<const HostView> batch) {
  begin_call("step");
  begin_step_on(batch);
  go_on_with(batch, Executor::kNoDeadline);
  return finish_step();
}

StepReport Trainer::step() {
  begin_call("step");
  begin_step_on_data();
  go_on_with_data(Executor::kNoDeadline);
  return finish_step();
}

std::optional<StepReport> Trainer::advance(std::span<const HostView> batch, double deadline) {
  if (!open_) begin_call("advance");
  cancelled_.begin();
  const auto check_again = [&] {
    if (!train_->is_computing() && !recipe_.find_nan) return;  // find_nan may ask for the rows again
    check(!open_->from_data, "advance: this step was begun with the data's rows; continue with n = 0 and NULL");
    inputs_.check(batch, open_->rows);
  };
  if (open_ && train_->is_updating()) {
    check_again();  // what has begun to update is not undone
  } else {
    undoing_on_error([&] { open_ ? check_again() : begin_step_on(batch); });
  }
  if (!go_on_with(batch, deadline)) return std::nullopt;
  return finish_step();
}

std::optional<StepReport> Trainer::advance(double deadline) {
  if (!open_) {
    begin_call("advance");
    begin_step_on_data();
  }
  cancelled_.begin();
  if (!open_->from_data && (train_->is_computing() || recipe_.find_nan)) {
    const bool is_undone = !train_->is_updating();
    abandon();
    fail(Code::invalid_argument, text("advance: this step was begun with the host's batch; continue with the same one",
                                      is_undone ? ". The step was rolled back" : ""));
  }
  if (!go_on_with_data(deadline)) return std::nullopt;
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
  const bool updates = open_ && train_->is_updating();
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
      train_ != nullptr, Code::wrong_state, call,
      ": the graph has no loss; mark one with st_graph_loss, or train with st_trainer_forward, st_trainer_backward and st_trainer_apply");
}

void Trainer::begin_step_on(std::span<const HostView> batch) {
  if (group_of() != nullptr) return begin_step_on_own(batch);
  const int64_t rows = inputs_.rows_of(batch, rows_per_step());
  inputs_.check(batch, rows);
  begin_step(rows, false);
}

/// A rank that is to have no rows may be given any, or none.
void Trainer::begin_step_on_own(std::span<const HostView> batch) {
  const int64_t most = team_->own_rows();
  const int64_t own = most == 0 ? 0 : inputs_.rows_of(batch, most, 0);
  if (own > 0) inputs_.check(batch, own);
  begin_step(own, false);
}

void Trainer::begin_step_on_data() {
  require(data_ != nullptr, Code::wrong_state,
          "step: this trainer has no data; create it with an st_data, or call st_trainer_step with a batch");
  begin_step(rows_per_step(), true);
}

void Trainer::begin_step(int64_t rows, bool from_data) {
  const double lr = learning_rate();
  if (group_of() != nullptr) {
    const int64_t given = team_->rows_of_all({.attempts = attempts_,
                                              .items = items_taken_,
                                              .lr = lr,
                                              .loss_scale = loss_scale(),
                                              .rows = from_data ? RankReport::kFromData : rows,
                                              .lacks_copies = train_->lacks_copies() ? 1 : 0});
    if (!from_data) rows = given;
  }
  check(rows > 0, "step: no rank was given rows");
  gradients_.executor = nullptr;
  if (team_) team_->begin(lr, updates_ + 1, attempts_, items_taken_, rows, loss_scale());
  train_->begin(lr, updates_ + 1, attempts_, rows, loss_scale());
  if (team_ && team_->any_lacks_copies()) train_->gather_copies_first();
  open_ = OpenStep{.lr = lr, .rows = rows, .from_data = from_data};
}

double Trainer::learning_rate() const {
  if (!host_schedule_) return schedule_.at(updates_);
  const double lr = host_schedule_(updates_);
  require(std::isfinite(lr) && lr >= 0, Code::callback, "step: the host's learning rate after ", updates_,
          " successful steps must be a finite number of at least 0, got ", lr);
  return lr;
}

bool Trainer::go_on_with(std::span<const HostView> batch, double deadline) {
  const auto bind = [&](int64_t first_row, int64_t rows, Executor& executor) {
    inputs_.bind(batch, group_of() != nullptr ? team_->own_row(first_row) : first_row, rows, executor);
    return true;
  };
  return run_until(deadline, batch, std::ref(bind));  // a reference: std::function would allocate for the captures
}

bool Trainer::go_on_with_data(double deadline) {
  const auto bind = [&](int64_t first_row, int64_t rows, Executor& executor) {
    const bool again = train_->is_finding_nan();
    if (train_->begins_again(first_row)) feed_->rewind(items_taken_);
    const auto is_over = [this] { return cancelled_.is_set() || (team_ && team_->groups().has_ended(0)); };
    const Patience patience{again || team_ ? Executor::kNoDeadline : deadline, is_over};
    const auto batch = feed_->next(patience);
    if (!batch) return false;
    inputs_.check(*batch, rows);
    inputs_.bind(*batch, 0, rows, executor);
    return true;
  };
  return run_until(team_ ? Executor::kNoDeadline : deadline, std::nullopt, std::ref(bind));
}

/// With other ranks a step is done at once: they have borrowed the batch, and wait for each other.
bool Trainer::run_until(double deadline, std::optional<std::span<const HostView>> batch, const PlannedStep::Bind& bind) {
  const double start = os::seconds();
  const bool done = undoing_on_error([&] {
    if (!team_) return train_->run_until(deadline, bind);
    const auto own_part = [&] {
      if (team_->compares_weights()) require_replicas(team_->groups().data(0), train_->executor(), model_->context().backend());
      team_->start_clock();
      if (!train_->run_until(Executor::kNoDeadline, bind)) train_->throw_end_of_group();
    };
    // Pieces that an update has changed are nowhere as they were.
    const auto note_what_is_mixed = [this] {
      has_torn_state_ = has_torn_state_ || (is_in_pieces() && (train_->has_updated() || team_->has_updated()));
      if (has_torn_state_ && model_->is_sharded()) model_->set_mixed(true);  // another trainer of it would not know
    };
    try {
      team_->run(batch, std::ref(own_part));
    } catch (const Error& error) {
      note_what_is_mixed();
      if (error.code() == Code::cancelled) static_cast<void>(cancelled_.take());  // it was seen in an exchange
      throw;
    } catch (...) {
      note_what_is_mixed();
      throw;
    }
    return true;
  });
  open_->seconds += os::seconds() - start;
  return done;
}

void Trainer::abandon() {
  if (!open_ || !train_->is_updating()) undo();
}

void Trainer::undo() {
  if (open_ && open_->from_data) {  // to the first row of the step that did not happen
    if (feed_) feed_->rewind(items_taken_);
    if (team_) team_->rewind(items_taken_);
  }
  open_.reset();
  host_step_->forget();
}

StepReport Trainer::finish_step() {
  const OpenStep done = *open_;
  open_.reset();
  if (done.from_data) items_taken_ += done.rows;
  gradients_ = {&train_->executor(), train_->unit()};
  const StepSlots& slots = train_->slots();
  StepReport report = report_of(slots, done.lr, done.seconds, train_->tokens());
  report.loss = last_loss_ = slots.loss_sum.get() / slots.loss_count.get();
  if (!report.skipped) add_noise(done.rows);
  report.gradient_noise_scale = noise_.scale();
  if (team_) report_exchange(report, train_->exposed_seconds(), train_->exchanges());
  return report;
}

void Trainer::report_exchange(StepReport& report, double exposed, const ExchangeQueue* exchanges) const {
  const RankTeam::Times times = team_->take_times(exposed, exchanges);
  report.exchange_milliseconds = times.exchange * 1e3;
  report.exchange_hidden = times.hidden;
  report.straggler = times.straggler;
}

/// A micro-batch that counts no row has no mean, and one that is all of the step tells nothing.
void Trainer::add_noise(int64_t rows) {
  const StepSlots& slots = train_->slots();
  if (!slots.first_norm.exists() || rows <= recipe_.batch || slots.first_loss_count.get() == 0) return;
  const double unit_of_first = train_->unit() / slots.loss_count.get() * slots.first_loss_count.get();
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
  std::vector<const Executor*> all = {&executor()};
  if (team_) team_->append_executors(all);
  return all;
}

void Trainer::watch(const std::function<Executor::Watch(size_t rank)>& of_rank) {
  if (train_) train_->watch(of_rank(0));
  if (team_) team_->watch(of_rank);
}

std::vector<const Plan*> Trainer::plans() const {
  std::vector<const Plan*> all;
  for (const Executor* executor : executors()) all.push_back(&executor->plan());
  return all;
}

std::span<const StepTimes> Trainer::timeline() const { return team_ ? team_->timeline().steps() : std::span<const StepTimes>(); }

PipelineTimes Trainer::pipeline_times() const { return team_ ? team_->pipeline_times() : PipelineTimes(); }

std::string Trainer::timeline_json() const { return team_ ? team_->timeline_json() : R"({"steps":[],"ranks":[]})"; }

std::vector<int64_t> Trainer::sent_bytes() const { return team_ ? team_->sent_bytes() : std::vector<int64_t>(); }

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
  int64_t sum = storage_.memory_bytes() + (train_ ? train_->own_bytes() : 0) + (feed_ ? feed_->buffer_bytes() : 0) +
                evaluator_->own_bytes() + host_step_->own_bytes() + (team_ ? team_->memory_bytes() : 0) +
                (recipe_.tensor > 1 && !model_->is_sharded() ? whole_.memory_bytes() : 0);
  return sum;
}

void Trainer::trim() {
  evaluator_->trim();
  if (average_) average_->trim();
  if (train_ && !open_) train_->trim();
  if (team_ && !open_) team_->trim();
}

}  // namespace st
