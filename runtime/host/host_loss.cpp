#include "host/host_loss.h"

#include <algorithm>
#include <string>

#include "base/digest.h"
#include "base/error.h"
#include "exec/finishing_on_error.h"
#include "model/host_bytes.h"
#include "model/host_outputs.h"
#include "passes/seed_outputs.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

constexpr std::string_view kOutput = "output.", kOutputGradient = "output_gradient.";

/// Moments lie at the same places in both plans, or a step of one kind could not go on where the other stopped; and pieces are the same.
void require_same_moments(const Program& program, const Program& beside) {
  for (size_t s = 0; s < beside.slots.size() && s < program.slots.size(); ++s)
    require(beside.slots[s].role != Role::parameter ||
                (beside.slots[s].type == program.slots[s].type && beside.slots[s].update == program.slots[s].update),
            Code::unsupported, "forward: the graph's own loss shards \"", beside.slots[s].name,
            "\" differently from the outputs; make the model from a graph without a loss, or use zero 2");
  for (const Slot& slot : program.slots)
    require(slot.role != Role::optimizer || beside.slot_named(slot.name) >= 0, Code::unsupported, "forward: an output depends on \"",
            slot.of < 0 ? slot.name : program.slot(slot.of).name,
            "\", which the graph's own loss does not train; make the model from a graph without a loss, or without that output");
}

}  // namespace

HostLoss::HostLoss(const Parts& parts, bool own_loss, const PlanOptions& options) : parts_(parts) {
  Context& context = parts.model.context();
  check(!parts.model.program().outputs.empty(),
        "forward: the graph has no loss and no output; mark a loss with st_graph_loss, or name an output with st_graph_output and compute "
        "its loss in the host");
  PlanOptions limited = options;
  limited.memory = std::min(options.memory, context.spare_memory());
  Plan plan = plan_host_loss(parts.model.program(), parts.recipe, own_loss, parts.beside,
                             kernel_needs(context.backend(), parts.workers.threads()), limited);
  Storage* storage = &parts_.storage;
  int64_t need = plan.memory.beside_parameters() + Executor::input_bytes(plan, context.backend(),
                                                                         {parts.ranks, parts.others ? parts.others->tensor : nullptr,
                                                                          parts.others ? parts.others->stages : nullptr});
  if (parts.beside != nullptr) {
    require_same_moments(plan.program, parts.beside->program);
    need -= plan.memory.on_device(Arena::optimizer);
    if (plan.memory.of(Arena::gradients) == parts.beside->memory.of(Arena::gradients)) {
      need -= plan.memory.on_device(Arena::gradients);  // no step of the other kind is under way while these are in use
    } else {
      storage = &apart_.emplace(parts.storage.sharing({Arena::parameters, Arena::optimizer}));
      storage->keep_in_file(parts.recipe.arenas_in_file(), parts.recipe.offload_folder);
    }
  }
  context.require_memory("forward: a step with the host's loss", need);
  const auto offloaded = [&](Arena arena) { return plan.memory.on_host[static_cast<size_t>(arena)] ? plan.memory.of(arena) : 0; };
  int64_t on_host = parts.beside == nullptr ? offloaded(Arena::optimizer) : 0;  // the model has its parameters there
  if (parts.beside == nullptr || apart_) on_host += offloaded(Arena::gradients);
  context.require_host_memory("forward: a step with the host's loss", on_host, on_host);
  if (parts.ranks != nullptr) {
    queue_ = std::make_unique<ExchangeQueue>(*parts.ranks);
    reports_.resize(static_cast<size_t>(all().size()));
  }
  if (parts.others && parts.others->stages != nullptr) links_.emplace(*parts.others->stages);
  executor_ = std::make_unique<Executor>(std::move(plan), *storage, parts.workers, &parts.cancelled, queue_.get(),
                                         links_ ? &*links_ : nullptr, parts.others ? parts.others->tensor : nullptr);
  find_slots();
  is_counted_ = has_outputs_ && options.tensor_rank == 0;
}

void HostLoss::find_slots() {
  const Program& program = executor_->plan().program;
  slots_ = StepSlots(*executor_);
  std::vector<bool> inputs = inputs_read_by(program);
  inputs.resize(parts_.model.program().slots.size());
  inputs_.emplace(parts_.model.program(), std::move(inputs), parts_.model.context());
  has_outputs_ = program.slot_named(std::string(kOutput) + parts_.model.program().outputs.front().name) >= 0;
  for (size_t s = parts_.model.program().slots.size(); s < program.slots.size() && has_outputs_; ++s)
    if (program.slots[s].role == Role::input)
      gradients_.push_back({program.slots[s].name.substr(kOutputGradient.size()), static_cast<SlotId>(s), {}});
  names_.reserve(parts_.model.program().outputs.size());  // views point at them
  for (const Output& output : parts_.model.program().outputs) {
    if (!has_outputs_) break;
    const Operand& slot = executor_->slot(program.slot_named(std::string(kOutput) + output.name));
    computed_.push_back(slot.data);
    std::byte* data = executor_->backend().in_host(slot.data);
    if (!executor_->backend().is_host_memory())
      data = downloads_.emplace_back(slot.elements() * bytes_of(slot.dtype), parts_.model.context().memory(), MemoryRole::other).data();
    outputs_.push_back(plain_view(names_.emplace_back(output.name), slot.dtype, slot.shape, data));
  }
  const Plan& plan = executor_->plan();
  for (const int64_t k : {0, 1}) {
    begins_[k][0] = plan.first_of(Phase::forward, k);
    ends_[k][0] = begins_[k][1] = plan.first_of(Phase::backward, k);
    ends_[k][1] = std::min(plan.first_of(Phase::forward, k + 1), plan.begin_of_update);
  }
}

void HostLoss::begin(double loss_scale) {
  if (slots_.loss_scale.exists()) slots_.loss_scale.set(loss_scale);
  pairs_ = 0;
  is_forward_done_ = false;
  if (queue_) exposed_before_ = queue_->exposed_seconds();
}

std::span<const HostView> HostLoss::forward(std::span<const HostView> batch, int64_t attempts) {
  compute_outputs(batch, attempts);
  for (size_t i = 0; i < downloads_.size(); ++i) executor_->backend().to_host(downloads_[i].data(), computed_[i], downloads_[i].size());
  return outputs_;
}

void HostLoss::forward_into(std::span<const HostView> batch, int64_t attempts, std::span<const HostView> outputs) {
  is_forward_done_ = false;
  check_into(outputs);
  require_apart_from("forward", batch, outputs);
  compute_outputs(batch, attempts);
  for (const HostView& to : outputs) copy_output(to);
}

void HostLoss::check_into(std::span<const HostView> outputs) const {
  check(has_outputs_ || outputs.empty(),
        "forward: the outputs are on the ranks of the last part's stage, not on this one; give no views for outputs here");
  check_outputs("forward", parts_.model.program(), outputs);
  for (const HostView& to : outputs)
    about_tensor(to.name, [&] {
      const HostView& from = *view_named(outputs_, to.name);
      check(to.dtype == from.dtype, "forward: output \"", to.name, "\" is ", from.dtype, ", the view is ", to.dtype,
            "; it must be the same, because outputs are not converted");
      check(to.shape == from.shape, "forward: output \"", to.name, "\" has shape ", from.shape, ", the view has shape ", to.shape);
    });
}

/// Copies the output of the view's name, as check_into() has accepted it.
void HostLoss::copy_output(const HostView& to) {
  const auto i = static_cast<size_t>(view_named(outputs_, to.name) - outputs_.data());
  Backend& backend = executor_->backend();
  if (to.is_on_device) return parts_.model.context().host_order().copy(place_of(to), computed_[i], to.bytes());
  if (backend.is_host_memory()) return scatter(static_cast<const std::byte*>(outputs_[i].data), to);
  void* const room = to.is_plain() ? to.data : downloads_[i].data();
  backend.to_host(room, computed_[i], to.bytes());
  if (room != to.data) scatter(downloads_[i].data(), to);
}

void HostLoss::compute_outputs(std::span<const HostView> batch, int64_t attempts) {
  const int64_t rows = parts_.recipe.batch;
  is_forward_done_ = false;
  attempts_ = attempts;
  if (gathers()) {
    RankReport own = report(RankReport::Call::forward);
    own.from = own_loss() ? From::own_loss : From::gradients;
    meet(own);
    if (links_ && links_->connected() == 0) parts_.others->connect(*links_, executor_->plan().program.links);
  }
  if (slots_.loss_sum.exists()) {  // later micro-batches add to it: what follows is one's own
    slots_.loss_sum.set(0);
    slots_.loss_count.set(0);
  }
  inputs_->check(batch, rows);
  finishing_on_error(*executor_, [&] { inputs_->bind(batch, 0, rows, *executor_); });
  if (slots_.counters.exists()) {
    slots_.counters.set(0, attempts);
    slots_.counters.set(1, (pairs_ * parts_.recipe.data_ranks() + (parts_.ranks == nullptr ? 0 : parts_.ranks->rank())) * rows);
  }
  const size_t later = pairs_ == 0 ? 0 : 1;
  run(begins_[later][0], ends_[later][0]);
  is_forward_done_ = true;
}

void HostLoss::backward(std::span<const HostView> gradients) {
  require(is_forward_done_, Code::wrong_state, "backward: there is no forward pass; call st_trainer_forward first");
  check(has_outputs_ || gradients.empty(),
        "backward: the outputs are on the ranks of the last part's stage, not on this one; give no gradients here");
  if (!has_outputs_) return run_backward(From::any);
  const Program& program = executor_->plan().program;
  const auto why_unknown = [&](const std::string& name) {
    std::vector<std::string> outputs;
    for (const OutputGradient& output : gradients_) outputs.push_back(text('"', output.name, '"'));
    const std::string known = outputs.empty() ? "it has none; add one with st_graph_output" : text("there are ", listed(outputs));
    return text("backward: \"", name, "\" is ", is_metric(name) ? "a metric, which gets no gradient" : "not a floating output of the graph",
                "; ", known);
  };
  const auto check_one = [&](const HostView& gradient) {
    const auto found = std::ranges::find(gradients_, gradient.name, &OutputGradient::name);
    if (found == gradients_.end()) fail(Code::invalid_argument, why_unknown(std::string(gradient.name)));
    const Type& type = program.slot(found->slot).type;
    check(gradient.dtype == type.dtype, "backward: output \"", gradient.name, "\" is ", type.dtype, ", its gradient is ", gradient.dtype);
    check(gradient.shape == type.shape, "backward: output \"", gradient.name, "\" has shape ", type.shape, ", its gradient ",
          gradient.shape);
    check(gradient.data != nullptr || type.bytes() == 0, "backward: the gradient of \"", gradient.name, "\" has no data (NULL)");
  };
  for (const HostView& gradient : gradients) about_tensor(gradient.name, [&] { check_one(gradient); });
  const auto bind = [&](OutputGradient& output) {
    const auto found = std::ranges::find(gradients, output.name, &HostView::name);
    if (found == gradients.end())
      executor_->bind(output.slot, zeros(program.slot(output.slot).type.bytes()));
    else if (found->is_on_device)
      executor_->bind(output.slot, place_of(*found), parts_.model.context().host_order());
    else
      executor_->bind(output.slot, compact_data(*found, output.compact, parts_.model.context().memory()));
  };
  finishing_on_error(*executor_, [&] {
    for (OutputGradient& output : gradients_) bind(output);
  });
  if (slots_.own_loss_seed.exists()) slots_.own_loss_seed.set(0);
  keep_hash_of(gradients);
  run_backward(From::gradients);
}

void HostLoss::backward_own_loss() {
  require(is_forward_done_, Code::wrong_state, "backward: there is no forward pass; call st_trainer_forward first");
  if (!has_outputs_) return run_backward(From::any);
  require(own_loss(), Code::wrong_state,
          "backward: the graph's own loss was not computed, because the graph has none or forward did not get all of its inputs; give "
          "gradients of the outputs");
  const Program& program = executor_->plan().program;
  for (const OutputGradient& output : gradients_) executor_->bind(output.slot, zeros(program.slot(output.slot).type.bytes()));
  slots_.own_loss_seed.set(program.loss_seed);
  hash_ = 0;
  run_backward(From::own_loss);
}

/// Returns when the exchanges that it started are complete.
void HostLoss::run(size_t begin, size_t end) {
  Executor::Cursor cursor{.at = begin};
  try {
    executor_->run_until(cursor, end, Executor::kNoDeadline, {});
  } catch (const std::exception& error) {
    if (queue_) queue_->give_up(error.what());
    throw;
  }
}

void HostLoss::run_backward(From from) {
  require(pairs_ == 0 || from == from_ || from == From::any, Code::wrong_state,
          "backward: a step takes gradients either from the host or from the graph's own loss, which is a mean over the step; call "
          "st_trainer_apply in between");
  is_forward_done_ = false;
  const size_t later = pairs_ == 0 ? 0 : 1;
  const double sum = slots_.loss_sum.get_or(0), count = slots_.loss_count.get_or(0);
  const bool adds_all = parts_.ranks != nullptr && parts_.recipe.reduce == "micro";
  if (adds_all || gathers()) {
    RankReport own = report(RankReport::Call::backward);
    own.loss_sum = sum;
    own.loss_count = count;
    own.from = from;
    own.gradients = hash_;
    meet(own);
    if (parts_.others) from = reports_[first_counted(reports_)].from;
  }
  if (adds_all)
    add_losses(pairs_ == 0);
  else
    add_loss(sum, count, pairs_ == 0);
  if (parts_.ranks != nullptr) executor_->set_contributors({.in_round = parts_.ranks->size(), .in_step = parts_.ranks->size()});
  run(begins_[later][1], ends_[later][1]);
  from_ = from;
  ++pairs_;
}

/// The first one is written, so that no zero is added to it.
void HostLoss::add_loss(double sum, double count, bool is_first) {
  loss_sum_ = is_first ? sum : loss_sum_ + sum;
  loss_count_ = is_first ? count : loss_count_ + count;
}

/// Those of all data ranks, in rank order.
void HostLoss::add_losses(bool is_first) {
  for (const RankReport& of : reports_) {
    if (of.is_counted == 0) continue;
    add_loss(of.loss_sum, of.loss_count, is_first);
    is_first = false;
  }
}

/// Tensor ranks each use their own, and must not compute different weights.
void HostLoss::keep_hash_of(std::span<const HostView> gradients) {
  hash_ = 0;
  if (!parts_.others || parts_.others->tensor == nullptr) return;
  executor_->finish();  // they were bound just now
  Digest digest;
  for (const OutputGradient& output : gradients_) {
    const auto found = std::ranges::find(gradients, output.name, &HostView::name);
    if (found == gradients.end()) continue;
    digest.update_sized(output.name);
    const auto bytes = static_cast<size_t>(executor_->plan().program.slot(output.slot).type.bytes());
    const HostBytes gradient(executor_->backend(), executor_->slot(output.slot).data, static_cast<int64_t>(bytes));
    digest.update({gradient.as(), bytes});
  }
  hash_ = std::stoull(digest.hex().substr(0, 16), nullptr, 16);
}

/// Sums of the micro-batches so far.
RankReport HostLoss::report(RankReport::Call call) const {
  return {.call = call,
          .from = from_,
          .attempts = attempts_,
          .pairs = parts_.recipe.reduce == "micro" || gathers() ? pairs_ : 0,
          .loss_scale = slots_.loss_scale.get_or(1),
          .data_rank = parts_.ranks == nullptr ? 0 : parts_.ranks->rank(),
          .is_counted = is_counted_ ? 1 : 0,
          .loss_sum = loss_sum_,
          .loss_count = loss_count_,
          .own_pairs = pairs_};
}

void HostLoss::meet(const RankReport& own) {
  const auto exchange = [&] { exchange_reports(all(), own, reports_); };  // a rank that is early waits here for the others
  queue_->alone(std::ref(exchange));                                      // a reference: std::function would allocate for the captures
}

void HostLoss::meet(double lr, int64_t number) {
  pairs_of_all_ = pairs_;
  if (parts_.ranks == nullptr) return;
  RankReport own = report(RankReport::Call::apply);
  own.lr = lr;
  own.update = number;
  meet(own);
  pairs_of_all_ = 0;
  for (const RankReport& of : reports_) pairs_of_all_ += of.is_counted * of.own_pairs;
  if (parts_.recipe.reduce == "step") add_losses(true);
  const int size = parts_.ranks->size();
  executor_->run_without_rows(executor_->plan().micro_batches - 1, {.in_round = size, .in_step = size}, Executor::RunByAll::in_step);
}

void HostLoss::update(double lr, int64_t number) {
  if (slots_.loss_sum.exists()) {
    slots_.loss_sum.set(loss_sum_);
    slots_.loss_count.set(loss_count_);
  }
  slots_.rates.set(0, lr);
  slots_.rates.set(1, static_cast<double>(number));
  slots_.gradient_unit.set(from_ == From::own_loss ? executor_->plan().program.loss_seed * loss_count_ : 1);
  run(executor_->begin_of_update(), executor_->end());
}

Address HostLoss::zeros(int64_t bytes) {
  if (!zeros_ || zeros_->size() < bytes) {
    int64_t room = 1;
    for (const OutputGradient& output : gradients_) room = std::max(room, executor_->plan().program.slot(output.slot).type.bytes());
    zeros_ = parts_.model.context().backend().allocate(room, MemoryRole::workspace);
  }
  return zeros_->data();
}

int64_t HostLoss::own_bytes() const {
  const bool has_gradients = apart_ && !executor_->plan().memory.in_file[static_cast<size_t>(Arena::gradients)];
  return st::own_bytes(*executor_) + (has_gradients ? executor_->allocated(Arena::gradients) : 0) + (zeros_ ? zeros_->size() : 0);
}

}  // namespace st
