#include "train/trainer.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/digest.h"
#include "base/error.h"
#include "base/os.h"
#include "passes/scale_loss.h"
#include "train/batch_binding.h"
#include "train/input_fields.h"

namespace st {
namespace {

constexpr int64_t kPiece = 32768;  // bytes of a digest at a time: what is large comes from the context's memory

/// The weights are this update's for its lifetime, or until it is paused.
class Updating {
 public:
  Updating(WeightsGate& gate, bool resumed) : gate_(gate) { resumed ? gate.resume_update() : gate.begin_update(); }
  ~Updating() {
    if (!paused_) gate_.end_update();
  }
  Updating(const Updating&) = delete;
  Updating& operator=(const Updating&) = delete;
  void pause() {
    gate_.pause_update();
    paused_ = true;
  }

 private:
  WeightsGate& gate_;
  bool paused_ = false;
};

}  // namespace

Trainer::Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options)
    : model_(std::move(model)),
      recipe_(std::move(recipe)),
      options_(options),
      cancelled_(&model_->context().cancels()),
      schedule_{recipe_.lr_schedule, recipe_.lr, recipe_.warmup},
      storage_(model_->storage().with_same_parameters()) {
  Context& context = model_->context();
  check(recipe_.device == context.backend().name(), "trainer: the recipe asks for device ", recipe_.device, ", the model's context is on ",
        context.backend().name(), "; make the context with that device");
  if (data) check_input_fields(model_->program(), data->fields(), recipe_.batch);
  const int threads = recipe_.threads > 0 ? static_cast<int>(recipe_.threads) : context.threads();
  inputs_ = inputs_read_by(model_->program());
  data_ = std::move(data);
  if (model_->program().loss_sum) {
    Plan plan = plan_training(model_->program(), recipe_, context.backend(), threads, options_);
    context.require_memory("trainer: a training step", plan.memory.total() - plan.memory.of(Arena::parameters));
    tokens_per_step_ = rows_of_loss(plan.program) * plan.micro_batches;
    workers_ = context.make_workers(threads);
    train_ = std::make_unique<Executor>(std::move(plan), storage_, *workers_, &cancelled_);
    slots_ = StepSlots(*train_);
    if (data_) open_feed();
  } else {
    workers_ = context.make_workers(threads);
    host_loss_[0] =
        std::make_unique<HostLoss>(HostLoss::Parts{*model_, recipe_, storage_, *workers_, cancelled_, nullptr}, false, options_);
  }
  evaluator_ = std::make_unique<Evaluator>(*model_, storage_, *workers_, cancelled_, recipe_.batch);
}

Trainer::~Trainer() {
  if (!open_ || open_->cursor.at <= train_->begin_of_update()) return;
  try {
    go_on(Executor::kNoDeadline, [](int64_t) {});
  } catch (...) {  // the gate was given back all the same
  }
}

void Trainer::open_feed() {
  feed_ = std::make_unique<Feed>(data_, static_cast<uint64_t>(recipe_.seed), recipe_.batch, recipe_.step_micro_batches(), items_taken_,
                                 model_->context().memory());
}

// --- a step, whole or in slices

StepReport Trainer::step(std::span<const NamedView> batch) {
  begin_call("step");
  check_batch(model_->program(), inputs_, batch, rows_per_step());
  begin_step(false);
  go_on_with(batch, Executor::kNoDeadline);
  return finish_step();
}

StepReport Trainer::step() {
  begin_call("step");
  begin_step(true);
  go_on_with_data(Executor::kNoDeadline);
  return finish_step();
}

std::optional<StepReport> Trainer::advance(std::span<const NamedView> batch, double deadline) {
  if (!open_) begin_call("advance");
  cancelled_.begin();
  const bool needs_rows = !open_ || open_->cursor.at < train_->begin_of_update();
  try {
    check(!open_ || !open_->from_data || !needs_rows, "advance: this step was begun with the data's rows; go on with n = 0 and NULL");
    if (needs_rows) check_batch(model_->program(), inputs_, batch, rows_per_step());
  } catch (...) {
    undo();
    throw;
  }
  if (!open_) begin_step(false);
  if (!go_on_with(batch, deadline)) return std::nullopt;
  return finish_step();
}

std::optional<StepReport> Trainer::advance(double deadline) {
  if (!open_) {
    begin_call("advance");
    begin_step(true);
  }
  cancelled_.begin();
  if (!open_->from_data && open_->cursor.at < train_->begin_of_update()) {
    undo();
    fail(Code::invalid_argument, "advance: this step was begun with the host's batch; go on with the same one. The step was undone");
  }
  if (!go_on_with_data(deadline)) return std::nullopt;
  return finish_step();
}

void Trainer::require_whole_step(const char* call) {
  cancelled_.begin();
  if (!open_ && open_host_ == nullptr) return;
  const bool updates = open_ && open_->cursor.at > train_->begin_of_update();
  if (!updates && cancelled_.take()) {
    undo();
    fail(Code::cancelled, text(call, ": the step that was under way was cancelled; the state is that of the last whole step"));
  }
  const char* way_out = open_ ? "; call st_trainer_advance until it is done, or st_trainer_cancel before its update has begun"
                              : "; end it with st_trainer_apply, or st_trainer_cancel it";
  fail(Code::wrong_state, text(call, ": a step is under way", way_out));
}

void Trainer::begin_call(const char* call) {
  require_whole_step(call);
  require(
      train_ != nullptr, Code::wrong_state, call,
      ": the graph has no loss; mark one with st_graph_loss, or train with st_trainer_forward, st_trainer_backward and st_trainer_apply");
}

void Trainer::begin_step(bool from_data) {
  require(!from_data || data_ != nullptr, Code::wrong_state, "step: this trainer was made without data; give the step a batch");
  if (from_data && !feed_) open_feed();
  gradients_.executor = nullptr;
  open_ = OpenStep{.cursor = {}, .lr = schedule_.at(updates_), .from_data = from_data};
  slots_.rates[0] = open_->lr;
  slots_.rates[1] = static_cast<double>(updates_ + 1);
}

bool Trainer::go_on_with(std::span<const NamedView> batch, double deadline) {
  return go_on(deadline, [&](int64_t micro_batch) {
    bind_rows(model_->program(), inputs_, batch, micro_batch * recipe_.batch, recipe_.batch, *train_);
  });
}

bool Trainer::go_on_with_data(double deadline) {
  return go_on(deadline, [&](int64_t) {
    const auto batch = feed_->next();
    check_batch(model_->program(), inputs_, batch, recipe_.batch);
    bind_rows(model_->program(), inputs_, batch, 0, recipe_.batch, *train_);
  });
}

template <class Bind>
bool Trainer::go_on(double deadline, const Bind& bind) {
  const double start = os::seconds();
  const auto before = [&](int64_t micro_batch) {
    bind(micro_batch);
    if (slots_.counters == nullptr) return;
    slots_.counters[0] = attempts_;
    slots_.counters[1] = micro_batch * recipe_.batch;
  };
  Executor::Cursor& cursor = open_->cursor;
  const size_t update = train_->begin_of_update();
  bool done = false;
  try {
    const bool computes = cursor.at < update;
    if (computes) {
      const WeightsGate::Reader whole_step(model_->gate());
      train_->go_on(cursor, update, deadline, std::ref(before));  // a reference: std::function would allocate for the captures
    }
    const bool in_time = !computes || deadline == Executor::kNoDeadline || os::seconds() < deadline;
    if (cursor.at >= update && in_time) {
      Updating weights(model_->gate(), cursor.at > update);
      done = train_->go_on(cursor, train_->end(), deadline, {});
      if (!done) weights.pause();
    }
  } catch (...) {
    undo();
    throw;
  }
  open_->seconds += os::seconds() - start;
  return done;
}

void Trainer::undo() {
  if (open_ && open_->from_data) feed_.reset();  // the next step opens it again, at the first row of the one that did not happen
  open_.reset();
  open_host_ = nullptr;
}

StepReport Trainer::finish_step() {
  const OpenStep done = *open_;
  open_.reset();
  if (done.from_data) items_taken_ += rows_per_step();
  gradients_ = {train_.get(), plan().program.loss_seed * *slots_.loss_count};
  StepReport report = report_of(slots_, done.lr, done.seconds, tokens_per_step_);
  report.loss = *slots_.loss_sum / *slots_.loss_count;
  return report;
}

StepReport Trainer::report_of(const StepSlots& slots, double lr, double seconds, int64_t tokens) {
  StepReport report;
  report.skipped = *slots.skipped;
  report.grad_norm = *slots.grad_norm;
  report.lr = lr;
  report.step = ++attempts_;
  if (!report.skipped) ++updates_;
  report.tokens = tokens_ += tokens;
  report.milliseconds = seconds * 1e3;
  report.tokens_per_second = static_cast<double>(tokens) / seconds;
  report.memory_bytes = memory_bytes();
  return report;
}

// --- a step whose loss the host computes

template <class Call>
auto Trainer::undoing_on_error(const Call& call) {
  try {
    return call();
  } catch (...) {
    undo();
    throw;
  }
}

std::span<const NamedView> Trainer::forward(std::span<const NamedView> batch) {
  if (open_) require_whole_step("forward");
  cancelled_.begin();
  return undoing_on_error([&] {
    if (open_host_ == nullptr) {
      HostLoss& host = host_loss_for(batch);
      host.begin();
      gradients_.executor = nullptr;
      host_seconds_ = os::seconds();
      open_host_ = &host;
    }
    const WeightsGate::Reader whole_step(model_->gate());
    open_host_->forward(batch, attempts_);
    return open_host_->outputs();
  });
}

/// With the graph's own loss when the batch has all that it needs; a host that computes its own need not make up targets.
HostLoss& Trainer::host_loss_for(std::span<const NamedView> batch) {
  const auto is_given = [&](size_t input) {
    return !inputs_[input] || std::ranges::find(batch, model_->program().slots[input].name, &NamedView::name) != batch.end();
  };
  bool own_loss = train_ != nullptr;
  for (size_t s = 0; s < inputs_.size(); ++s) own_loss = own_loss && is_given(s);
  auto& made = host_loss_[own_loss ? 1 : 0];
  if (!made)
    made = std::make_unique<HostLoss>(
        HostLoss::Parts{*model_, recipe_, storage_, *workers_, cancelled_, train_ ? &train_->plan() : nullptr}, own_loss, options_);
  return *made;
}

void Trainer::backward(std::span<const NamedView> output_gradients) {
  if (open_) require_whole_step("backward");
  cancelled_.begin();
  undoing_on_error([&] {
    require(open_host_ != nullptr, Code::wrong_state, "backward: there is no forward to go back from; call st_trainer_forward first");
    const WeightsGate::Reader whole_step(model_->gate());
    open_host_->backward(output_gradients);
  });
}

void Trainer::backward_own_loss() {
  if (open_) require_whole_step("backward");
  cancelled_.begin();
  undoing_on_error([&] {
    require(open_host_ != nullptr, Code::wrong_state, "backward: there is no forward to go back from; call st_trainer_forward first");
    const WeightsGate::Reader whole_step(model_->gate());
    open_host_->backward_own_loss();
  });
}

StepReport Trainer::apply() {
  if (open_) require_whole_step("apply");
  cancelled_.begin();
  return undoing_on_error([&] {
    if (cancelled_.take()) fail(Code::cancelled, "apply: cancelled; the state is that of the last whole step");
    require(open_host_ != nullptr && open_host_->pairs() > 0, Code::wrong_state,
            "apply: there is no gradient to apply; call st_trainer_forward and st_trainer_backward first");
    HostLoss& host = *open_host_;
    const double lr = schedule_.at(updates_);
    {
      const Updating weights(model_->gate(), false);
      host.update(lr, updates_ + 1);
    }
    open_host_ = nullptr;
    gradients_ = {&host.executor(), host.unit()};
    const int64_t rows = train_ ? tokens_per_step_ / recipe_.step_micro_batches() : recipe_.batch;
    StepReport report = report_of(host.slots(), lr, os::seconds() - host_seconds_, rows * host.pairs());
    report.loss = host.used_own_loss() ? *host.slots().loss_sum / *host.slots().loss_count : std::numeric_limits<double>::quiet_NaN();
    return report;
  });
}

// --- looking

void Trainer::gradient(std::string_view parameter, std::span<float> to) const {
  const SlotId slot = model_->parameter_named(parameter);
  require(gradients_.executor != nullptr, Code::wrong_state,
          "gradient: there is none, since no step was done, or a later one was begun and undone; do a step first");
  const Executor& executor = *gradients_.executor;
  const SlotId gradient = executor.plan().program.slot_named("gradient." + model_->slot(slot).name);
  require(gradient >= 0, Code::not_found, "gradient: \"", parameter, "\" has none: it is not trainable, or the loss does not depend on it");
  const Operand& from = executor.slot(gradient);
  require(from.dtype == DType::f32, Code::unsupported, "gradient: that of \"", parameter, "\" is ", from.dtype, ", f32 is given out");
  check(static_cast<int64_t>(to.size()) == from.elements(), "gradient: \"", parameter, "\" has ", from.elements(),
        " elements, there is room for ", to.size());
  model_->context().backend().to_host(to.data(), from.as<std::byte>(), static_cast<int64_t>(to.size_bytes()));
  // The update has added the uses of a tied weight to its first one.
  for (float& g : to) g = static_cast<float>(static_cast<double>(g) / gradients_.unit);
}

void Trainer::set(std::string_view key, std::string_view json) {
  static_cast<void>(recipe_.get(key));  // throws for an unknown key, names the nearest
  require(key == "lr" || key == "lr_schedule" || key == "warmup", Code::unsupported, "trainer: ", key,
          " is fixed in the plan; make a new trainer with another recipe. lr, lr_schedule and warmup can be set");
  recipe_.set(key, json);
  schedule_ = {recipe_.lr_schedule, recipe_.lr, recipe_.warmup};
}

Evaluation Trainer::evaluate(const Dataset& data) {
  if (open_) require_whole_step("evaluate");
  cancelled_.begin();
  return evaluator_->run(data);
}

std::string Trainer::state_digest() const {
  const Program& program = plan().program;
  std::vector<size_t> order;
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s].role == Role::parameter || program.slots[s].role == Role::optimizer) order.push_back(s);
  std::ranges::sort(order, {}, [&](size_t s) -> const std::string& { return program.slots[s].name; });

  Digest digest;
  std::vector<std::byte> chunk;
  for (const size_t s : order) {
    const Slot& slot = program.slots[s];
    digest.update_sized(slot.name);
    digest.update_sized(name_of(slot.type.dtype));
    digest.update_sized(text(slot.type.shape));
    const auto* device = executor().slot(static_cast<SlotId>(s)).as<std::byte>();
    for (int64_t first = 0; first < slot.type.bytes(); first += kPiece) {
      chunk.resize(static_cast<size_t>(std::min(kPiece, slot.type.bytes() - first)));
      model_->context().backend().to_host(chunk.data(), device + first, std::ssize(chunk));
      digest.update(chunk);
    }
  }
  return digest.hex();
}

int64_t Trainer::memory_bytes() const {
  int64_t sum = storage_.bytes() + (train_ ? own_bytes(*train_) : 0) + (feed_ ? feed_->buffer_bytes() : 0) + evaluator_->own_bytes();
  for (const auto& host : host_loss_)
    if (host) sum += host->own_bytes();
  return sum;
}

}  // namespace st
