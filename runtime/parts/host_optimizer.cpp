#include "parts/host_optimizer.h"

#include <charconv>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/float16.h"
#include "base/heap.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/part_recipe.h"

namespace st {
namespace {

constexpr const char* kInOnePiece = " must be row-major without gaps and aligned to its elements; give a contiguous copy";

PartKeys keys_of_part() { return {.part = "optimizer", .keys = optimizer_keys()}; }

Recipe recipe_of(std::string_view json) {
  Recipe recipe;
  recipe.clip = 0;
  merge_part(recipe, keys_of_part(), json);
  return recipe;
}

bool fits(DType parameter, DType gradient) {
  return parameter == DType::f64 ? gradient == DType::f64 : is_floating(gradient) && gradient != DType::f64;
}

void check_parameter(const HostView& view) {
  about_tensor(view.name, [&] {
    check(view.dtype == DType::f32 || view.dtype == DType::f64, "optimizer: parameter \"", view.name, "\" must be f32 or f64, got ",
          view.dtype, "; keep an f32 master and give that");
    check(view.is_plain(), "optimizer: ", view.name, kInOnePiece);
  });
}

}  // namespace

const std::vector<std::string>& optimizer_keys() {
  static const auto keys = once_for_the_process([] {
    return words_of(
        "optimizer lr beta1 beta2 epsilon weight_decay momentum dampening nesterov centered rate_decay initial_accumulator_value "
        "beta2_decay epsilon2 clip_threshold ns_steps adjust_lr groups clip clip_value threads");
  });
  return keys;
}

HostOptimizer::HostOptimizer(std::shared_ptr<Context> context, std::string_view json, std::span<const HostView> parameters,
                             HostShards shards)
    : context_(std::move(context)),
      recipe_(recipe_of(json)),
      optimizer_(recipe_.update()),
      shards_(shards),
      storage_(context_->host_backend()) {
  take_parameters(parameters);
  workers_ = context_->make_workers(recipe_.threads > 0 ? static_cast<int>(recipe_.threads) : context_->threads());
  if (shards_.ranks != nullptr) exchanges_ = std::make_unique<ExchangeQueue>(*shards_.ranks);
  plan(slots_);
  make_own_sums();
  bind_lasting();
  list_state();
}

void HostOptimizer::take_parameters(std::span<const HostView> parameters) {
  check(!parameters.empty(), "optimizer: needs at least one parameter, got none");
  std::set<std::string_view> seen;
  for (const HostView& view : parameters) {
    check(seen.insert(view.name).second, "optimizer: two parameters are named \"", view.name, "\"");
    names_.emplace_back(view.name);
  }
  recipe_.groups.check_against(names_);

  bool trains = false;
  for (size_t i = 0; i < names_.size(); ++i) {
    HostView view = parameters[i];
    view.name = names_[i];
    check_parameter(view);
    parameters_.push_back(view);
    gradient_names_.push_back(text("gradient of ", names_[i]));
    copy_names_.push_back(text("copy of ", names_[i]));
    const bool frozen = recipe_.groups.of(names_[i]).frozen;
    slots_.push_back({.parameter = -1, .gradient = frozen ? -1 : 0, .gradient_type = view.dtype});
    trains = trains || !frozen;
  }
  check(trains, "optimizer: every parameter is frozen by a group; leave at least one to train");
  for (size_t i = 0; i < names_.size(); ++i)
    require(!is_trained(i) || parameters_[i].dtype == DType::f32 || choice_of(i).op != Op::adamw_8bit, Code::unsupported,
            "optimizer: parameter \"", names_[i], "\" is f64, but adamw-8bit updates only f32; give its group optimizer adamw");
  copies_.resize(size());
  together_ = parameters_;
  require_apart(together_, "optimizer");
}

/// A slot's name is the number of its parameter, so that no name of the host's meets one of the passes'.
const std::string& HostOptimizer::name_of(const Slot& parameter) const {
  size_t number = 0;
  std::from_chars(parameter.name.data(), parameter.name.data() + parameter.name.size(), number);
  return names_[number];
}

OptimizerChoice HostOptimizer::choice_of(size_t parameter) {
  const HostView& view = parameters_[parameter];
  return optimizer_.choose(names_[parameter], {.dtype = view.dtype, .shape = view.shape, .layout = {}}, true);
}

/// This rank has the state of its pieces alone; of own sums, gradients too.
void HostOptimizer::cut(Program& program, std::span<const ParameterSlots> slots) {
  program.mesh.data = shards_.ranks->size();
  program.rank = shards_.ranks->rank();
  cut_parameters(program, [&](const Slot& parameter) {
    const auto at = static_cast<size_t>(&parameter - program.slots.data());
    return takes_whole(choice_of(at).op) ? parameter.type.shape.elements() : kCutGrain;
  });
  update_by_shards(program);
  if (cuts_.empty())
    for (size_t i = 0; i < size(); ++i) cuts_.push_back(is_trained(i) ? cuts_of(program, static_cast<SlotId>(i)) : Cuts{});
  for (const ParameterSlots& of : slots)
    if (of.gradient >= 0 && shards_.own_sums) make_flat(program, of.gradient, of.parameter);
}

/// By the types of the gradients and copies in `slots`. The state stays where it is: its slots are the same in every plan.
void HostOptimizer::plan(std::vector<ParameterSlots> slots) {
  Program program;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Type type{.dtype = parameters_[i].dtype, .shape = parameters_[i].shape, .layout = {}};
    slots[i].parameter = program.add_slot(
        {.name = std::to_string(i), .type = type, .role = Role::parameter, .init = {}, .trainable = is_trained(i), .borrowed = true});
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!is_trained(i)) continue;
    const Type type{.dtype = slots[i].gradient_type, .shape = parameters_[i].shape, .layout = {}};
    slots[i].gradient = program.add_slot(
        {.name = text("gradient.", i), .type = type, .role = Role::gradient, .init = {}, .of = slots[i].parameter, .borrowed = true});
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].copy = -1;
    if (!is_trained(i) || !slots[i].copy_type) continue;
    const Type type{.dtype = *slots[i].copy_type, .shape = parameters_[i].shape, .layout = {}};
    slots[i].copy = program.add_slot(
        {.name = text("copy.", i), .type = type, .role = Role::working, .init = {}, .of = slots[i].parameter, .borrowed = true});
  }
  program.step.gradient_unit =
      program.add_slot({.name = "unit", .type = {.dtype = DType::f64, .shape = {}, .layout = {}}, .role = Role::control, .init = {}});
  if (shards_.ranks != nullptr) cut(program, slots);
  const auto name = [this](const Slot& parameter) -> std::string_view { return name_of(parameter); };
  Plan plan = plan_update(program, recipe_, name, kernel_needs(context_->host_backend(), workers_->threads()));
  if (!executor_) context_->require_memory_of_parts("optimizer: its state", plan.memory.total());
  executor_ = std::make_unique<Executor>(std::move(plan), storage_, *workers_, nullptr, exchanges_.get());
  slots_ = std::move(slots);
  step_ = StepSlots(*executor_);
  bind_lasting();
}

void HostOptimizer::bind(SlotId slot, void* data) {
  if (slot >= 0) executor_->bind(slot, data);
}

/// Binds the memory that stays the same in every step.
void HostOptimizer::bind_lasting() {
  for (size_t i = 0; i < size(); ++i) {
    bind(slots_[i].parameter, parameters_[i].data);
    bind(slots_[i].copy, copies_[i].data);
    if (own_sums_.size() > 0) bind(slots_[i].gradient, own_sums(i));
  }
}

void HostOptimizer::list_state() {
  const Program& program = executor_->plan().program;
  std::vector<SlotId> slots;
  state_names_.emplace_back("step");
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.role != Role::optimizer) continue;
    slots.push_back(static_cast<SlotId>(s));
    state_names_.push_back(text(slot.name.substr(0, slot.name.find('.')), ".", names_[static_cast<size_t>(slot.of)]));
  }
  state_.push_back(plain_view(state_names_[0], DType::i64, {}, &updates_));
  for (size_t i = 0; i < slots.size(); ++i) {
    const Operand& at = executor_->slot(slots[i]);
    state_.push_back(plain_view(state_names_[i + 1], at.dtype, at.shape, executor_->backend().in_host(at.data)));
  }
}

/// Once, for all plans.
void HostOptimizer::make_own_sums() {
  if (!shards_.own_sums) return;
  int64_t bytes = 0;
  for (size_t i = 0; i < size(); ++i) {
    own_sums_at_.push_back(bytes);
    if (is_trained(i)) bytes += align_up(cuts_[i].elements_of(shards_.ranks->rank()) * bytes_of(parameters_[i].dtype));
  }
  context_->require_memory_of_parts("optimizer: storage of the gradient sums", bytes);
  own_sums_ = Memory(bytes, context_->memory(), MemoryRole::gradients);
}

std::vector<HostOptimizer::WholeState> HostOptimizer::whole_states() {
  std::vector<WholeState> states;
  auto own = state_.begin() + 1;  // behind "step"
  for (size_t i = 0; i < size(); ++i) {
    if (!is_trained(i)) continue;
    const OptimizerChoice choice = choice_of(i);
    const auto states_of = [&](const Shape& shape) {
      return optimizer_state(choice.op, make_attrs(choice.op, choice.attrs), {.dtype = parameters_[i].dtype, .shape = shape, .layout = {}});
    };
    const auto whole = states_of(parameters_[i].shape);
    const size_t first = states.size();
    for (const OptimizerState& state : whole)
      states.push_back({.name = text(state.name, ".", names_[i]), .dtype = state.type.dtype, .shape = state.type.shape, .cuts = {}});
    for (int32_t rank = 0; rank <= shards_.ranks->size(); ++rank) {
      const int64_t cut = cuts(i)[rank];
      const bool is_end = cut == parameters_[i].shape.elements();
      const auto before = is_end || cut == 0 ? whole : states_of({cut});
      for (size_t k = 0; k < whole.size(); ++k) states[first + k].cuts.push_back(cut == 0 ? 0 : before[k].type.shape.elements());
    }
    if (cuts(i).elements_of(shards_.ranks->rank()) == 0) continue;
    for (size_t k = first; k < states.size(); ++k) states[k].own = (own++)->data;
  }
  return states;
}

void HostOptimizer::check_gradient(size_t parameter, const HostView& gradient) const {
  const HostView& of = parameters_[parameter];
  if (!is_trained(parameter)) return;
  about_tensor(names_[parameter], [&] {
    check(gradient.shape == of.shape, "optimizer: \"", names_[parameter], "\" has shape ", of.shape, ", its gradient ", gradient.shape);
    check(fits(of.dtype, gradient.dtype), "optimizer: \"", names_[parameter], "\" is ", of.dtype, ", its gradient is ", gradient.dtype,
          "; an f32 parameter takes f32, bf16 or f16, an f64 one f64");
    check(gradient.is_plain(), "optimizer: ", gradient_names_[parameter], kInOnePiece);
  });
}

void HostOptimizer::check_gradients(std::span<const HostView> gradients) {
  together_ = parameters_;
  for (size_t i = 0; i < size(); ++i) {
    if (copies_[i].data != nullptr) together_.push_back(copies_[i]);
    if (!is_trained(i)) continue;
    check_gradient(i, gradients[i]);
    together_.push_back(gradients[i]);
  }
  require_apart(together_, "optimizer");
}

bool HostOptimizer::has_types_of(std::span<const HostView> gradients) const {
  for (size_t i = 0; i < size(); ++i)
    if (is_trained(i) && slots_[i].gradient_type != gradients[i].dtype) return false;
  return true;
}

HostOptimizer::Report HostOptimizer::step(std::span<const HostView> gradients, double scale) {
  take(gradients);
  return update(scale);
}

void HostOptimizer::take(std::span<const HostView> gradients) {
  if (!gradients.empty()) check_gradients(gradients);
  check(updates_ >= 0 && updates_ < kMostUpdates, "optimizer: the state's step, the number of updates so far, must be in [0, 2^53), got ",
        updates_);
  if (shards_.own_sums) return;
  if (!has_types_of(gradients)) {
    std::vector<ParameterSlots> slots = slots_;
    for (size_t i = 0; i < size(); ++i)
      if (is_trained(i)) slots[i].gradient_type = gradients[i].dtype;
    plan(std::move(slots));
  }
  for (size_t i = 0; i < size(); ++i)
    if (is_trained(i)) bind(slots_[i].gradient, gradients[i].data);
}

HostOptimizer::Report HostOptimizer::update(double scale) {
  step_.gradient_unit.set(scale);
  step_.rates.set(0, recipe_.lr);
  step_.rates.set(1, static_cast<double>(updates_ + 1));
  executor_->run({});
  if (!step_.skipped.get()) ++updates_;
  return {.skipped = step_.skipped.get(), .step = updates_, .lr = recipe_.lr, .norm = step_.grad_norm.get()};
}

/// One for each parameter.
std::vector<HostView> HostOptimizer::checked_copies(std::span<const HostView> copies) const {
  std::vector<HostView> checked(size()), together = parameters_;
  for (size_t i = 0; i < copies.size(); ++i) {
    const HostView &copy = copies[i], &parameter = parameters_[i];
    if (copy.data == nullptr) continue;
    about_tensor(names_[i], [&] {
      check(parameter.dtype == DType::f32 && (copy.dtype == DType::bf16 || copy.dtype == DType::f16), "optimizer: \"", names_[i], "\" is ",
            parameter.dtype, ", its copy is ", copy.dtype, "; copies must be bf16 or f16, of f32 parameters");
      check(copy.shape == parameter.shape, "optimizer: \"", names_[i], "\" has shape ", parameter.shape, ", its copy ", copy.shape);
      check(copy.is_plain(), "optimizer: ", copy_names_[i], kInOnePiece);
    });
    checked[i] = copy;
    checked[i].name = copy_names_[i];
    together.push_back(checked[i]);
  }
  require_apart(together, "optimizer");
  return checked;
}

void HostOptimizer::keep_copies(std::span<const HostView> copies) {
  check(copies.empty() || copies.size() == size(), "optimizer: got ", copies.size(), " copies for ", size(),
        " parameters; give one per parameter, or none");
  std::vector<HostView> checked = checked_copies(copies);
  std::vector<ParameterSlots> slots = slots_;
  bool same = true;
  for (size_t i = 0; i < size(); ++i) {
    slots[i].copy_type = checked[i].data == nullptr ? std::nullopt : std::optional(checked[i].dtype);
    same = same && slots[i].copy_type == slots_[i].copy_type;
  }
  together_.reserve(3 * size());
  if (!same) plan(std::move(slots));
  copies_ = std::move(checked);
  bind_lasting();
  for (size_t i = 0; i < size(); ++i)
    if (copies_[i].data != nullptr) write_copy(i);
}

void HostOptimizer::write_copy(size_t parameter) const {
  constexpr int64_t kGrain = 1 << 14;  // elements
  const HostView& copy = copies_[parameter];
  const auto* const from = static_cast<const float*>(parameters_[parameter].data);
  auto* const to = static_cast<uint16_t*>(copy.data);
  workers_->run_range(copy.shape.elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = copy.dtype == DType::bf16 ? bf16_of(from[i]) : f16_of(from[i]);
  });
}

void HostOptimizer::set(std::string_view key, std::string_view json) {
  require_key(keys_of_part(), key);
  require(key == "lr", Code::unsupported, "optimizer: ", key, " is fixed at creation, only lr can be set; create another optimizer");
  set_part(recipe_, keys_of_part(), "lr", json);
}

}  // namespace st
