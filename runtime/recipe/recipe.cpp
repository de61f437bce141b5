#include "recipe/recipe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/verify.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/autodiff.h"
#include "passes/average.h"
#include "passes/clip.h"
#include "passes/data_parallel.h"
#include "passes/dropout.h"
#include "passes/first_norm.h"
#include "passes/for_inference.h"
#include "passes/freeze.h"
#include "passes/fuse.h"
#include "passes/fuse_loss.h"
#include "passes/gather_units.h"
#include "passes/loss_terms.h"
#include "passes/overlap.h"
#include "passes/pack_weights.h"
#include "passes/pipeline_cut.h"
#include "passes/round_gradients.h"
#include "passes/scale_loss.h"
#include "passes/scope_patterns.h"
#include "passes/seed_outputs.h"
#include "passes/split_backward.h"
#include "passes/tensor_parallel.h"
#include "passes/update.h"
#include "passes/zero_shard.h"
#include "plan/memory_plan.h"
#include "plan/pipeline_schedule.h"
#include "plan/state_windows.h"
#include "recipe/can_offload.h"
#include "recipe/fast_collectives.h"
#include "recipe/recompute_policy.h"

namespace st {
namespace {

DType element_of(const std::string& precision) {
  if (precision == "bf16") return DType::bf16;
  return precision == "fp16" ? DType::f16 : DType::f32;
}

DType sums_of(const Recipe& recipe) {
  check(recipe.accumulate_dtype == "fp32" || recipe.accumulate_dtype == recipe.gradient_dtype,
        "recipe: accumulate_dtype must be fp32 or that of gradient_dtype, ", recipe.gradient_dtype, ", got ", recipe.accumulate_dtype,
        "; set gradient_dtype to ", recipe.accumulate_dtype, " too");
  return element_of(recipe.accumulate_dtype);
}

Reduce reduce_of(const Recipe& recipe) { return recipe.reduce == "step" ? Reduce::step : Reduce::micro; }

void freeze_groups(Program& program, const Recipe& recipe) {
  std::vector<std::string> names;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::parameter) names.push_back(slot.name);
  recipe.groups.check_against(names);
  freeze(program, [&](const Slot& parameter) { return recipe.groups.of(parameter.name).frozen; });
}

bool has_loss_terms(const Recipe& recipe) { return recipe.label_smoothing != 0 || recipe.z_loss != 0; }

std::string_view slot_name(const Slot& parameter) { return parameter.name; }

ClipGroups clip_groups(const Recipe& recipe, const ParameterName& name) {
  ClipGroups groups;
  for (const ParameterGroup& group : recipe.groups.all()) groups.max_norms.push_back(group.clip.value_or(0));
  groups.group_of = [&recipe, name](const Slot& parameter) {
    return recipe.groups.of(name(parameter)).clip ? recipe.groups.index_of(name(parameter)) : -1;
  };
  return groups;
}

ChooseOptimizer updates_of(const Recipe& recipe) {
  return [optimizer = recipe.update()](const Slot& parameter, bool is_weight) mutable {
    Type type = parameter.type;  // one choice at every tensor degree
    if (parameter.piece.is_cut()) type.shape = parameter.piece.whole;
    return optimizer.choose(parameter.name, type, is_weight);
  };
}

/// Returns the masters that ranks of this process share.
std::vector<SlotId> shard_by(Program& program, const Recipe& recipe, const PlanOptions& options, bool by_graph, bool is_short) {
  std::vector<SlotId> shared;
  zero_shard(program, recipe.zero, reduce_of(recipe), recipe.bucket, updates_of(recipe), by_graph, element_of(recipe.gradient_dtype));
  if (by_graph && options.shares_masters) shared = share_masters(program);
  if (by_graph && options.shards_masters) shard_masters(program, is_short);
  return shared;
}

/// Updates all parameters of a program without products, where every matrix counts as a weight, and leaves them where they are.
void update_named(Program& program, const Recipe& recipe, const ParameterName& name) {
  std::vector<SlotId> borrowed(program.slots.size());  // who has shards of them gathers them
  std::iota(borrowed.begin(), borrowed.end(), 0);
  const auto choose = [&, optimizer = recipe.update()](const Slot& parameter, bool) mutable {
    return optimizer.choose(name(parameter), parameter.type, true);
  };
  update(program, choose, borrowed);
}

void cast_by(Program& program, const Recipe& recipe, When when) {
  std::vector<RegionId> wide;
  if (recipe.fp32_scopes != "none") wide = scopes_matching(program, recipe.fp32_scopes, ScopeKind::any, "fp32_scopes", ". Or use none");
  check(recipe.residual_dtype == "fp32" || recipe.residual_dtype == recipe.precision,
        "recipe: residual_dtype must be fp32 or that of precision, ", recipe.precision, ", got ", recipe.residual_dtype);
  autocast(program, element_of(recipe.precision), when, wide, element_of(recipe.residual_dtype));
}

/// loss_seed 0: that of these rows.
void scale_loss_by(Program& program, const Recipe& recipe, double loss_seed) {
  scale_loss(program, recipe.step_micro_batches());
  if (loss_seed != 0) program.loss_seed = loss_seed;
}

/// A step of one micro-batch, and a short one, tell no noise; but ranks exchange the same in all of them.
bool measures_noise(const Recipe& recipe, bool is_short) {
  return recipe.gradient_noise_scale && recipe.step_micro_batches() > 1 && (!is_short || recipe.data_ranks() > 1);
}

/// Parameters of which another program of the model has shards are these shards, and borrowed if `borrows`. Slots of parameters are the
/// same in both.
void gather_shards(Program& program, const Program& of, bool borrows) {
  program.mesh = of.mesh;
  program.rank = of.rank;
  program.tensor_rank = of.tensor_rank;
  program.stage = of.stage;
  for (size_t s = 0; s < of.slots.size() && s < program.slots.size(); ++s) {
    const Slot& theirs = of.slots[s];
    if (theirs.role != Role::parameter) continue;
    program.slots[s].type.layout = theirs.type.layout;
    program.slots[s].type.shape = theirs.type.shape;
    program.slots[s].piece = theirs.piece;
    if (theirs.type.layout.is_flat()) program.slots[s].sums = theirs.sums;
  }
  gather_units(program, of.mesh.stage > 1 || of.mesh.tensor > 1 ? MeshAxis::all : MeshAxis::data);
  for (Slot& slot : program.slots)
    slot.borrowed = slot.borrowed || (borrows && slot.role == Role::parameter && !slot.type.layout.is_replicated());
}

/// A host's own table.
PipelineSchedule schedule_in(const Recipe& recipe) {
  PipelineSchedule schedule = parse_schedule(recipe.schedule);
  const int64_t rounds = recipe.step_rounds();
  check(schedule.stages == recipe.stages && schedule.micro_batches == rounds, "recipe: schedule is a table of ", schedule.stages,
        " stages and ", schedule.micro_batches, " micro-batches; the recipe has ", recipe.stages, recipe.stages == 1 ? " stage" : " stages",
        " and ", rounds, " micro-batches a step", recipe.data_ranks() > 1 ? " on each data rank" : "",
        "; give a table for them, a line for each stage, or a schedule by name");
  check(recipe.stage_chunks == 0 || recipe.stage_chunks == schedule.chunks, "recipe: schedule is a table of ", schedule.chunks,
        " parts on each stage, but stage_chunks is ", recipe.stage_chunks, "; leave stage_chunks out");
  return schedule;
}

void cut_by(Program& program, const Recipe& recipe, const PipelineSchedule& schedule, std::span<const RegionId> scopes, When copies) {
  pipeline_cut(program, {.stage_of = schedule.stage_of_parts(), .starts = recipe.stage_starts, .scopes = scopes, .copies = copies});
}

StepOrder order_by_schedule(Program& program, const PipelineSchedule& schedule) {
  const std::vector<int32_t> most = messages_under_way(schedule, program.links);
  for (size_t link = 0; link < most.size(); ++link) program.links[link].under_way = most[link];
  return in_pipeline(program, schedule);
}

/// Those of this stage are the model's own, which is in the same process.
void borrow_parameters(Program& program) {
  for (Slot& slot : program.slots) slot.borrowed = slot.borrowed || (slot.role == Role::parameter && is_here(program, slot));
}

/// `offloads`: the plan is one of training, on a device of its own memory.
std::array<bool, kArenas> arenas_on_host(const Recipe& recipe, const PlanOptions& options, bool offloads) {
  std::array<bool, kArenas> on_host{};
  if (offloads && recipe.offload_folder.empty()) on_host = recipe.arenas_offloaded();
  on_host[static_cast<size_t>(Arena::parameters)] = on_host[static_cast<size_t>(Arena::parameters)] || options.parameters_on_host;
  return on_host;
}

/// The most that one node may read or gather: a 16th of a stage's tensors of this role where they are in the host's memory, else all.
/// Stages may differ by the gradient that one of them receives for a tied weight; the sums of all groups are exchanged together.
int64_t bytes_at_a_time(const Program& program, Role role, const std::array<bool, kArenas>& on_host) {
  if (!on_host[static_cast<size_t>(role == Role::gradient ? Arena::gradients : Arena::parameters)])
    return std::numeric_limits<int64_t>::max();
  int64_t sum = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == role) sum += slot.type.bytes();
  return sum / 16 / program.mesh.stage;
}

/// The purpose of a plan, and what its passes depend on.
struct Task {
  enum class Purpose { step, short_micro_batch, host_loss, update, inference };
  Purpose purpose;
  const Recipe& recipe;
  const KernelNeeds& needs;
  const PlanOptions& options;
  int64_t micro_batches = 1;                  // of the plan
  bool has_loss = true;                       // the graph's own loss is computed
  double loss_seed = 0;                       // 0: that of these rows
  const Plan* beside = nullptr;               // its moments are shared
  std::span<const std::string> outputs = {};  // inference
  ParameterName name = slot_name;

  bool trains() const { return purpose != Purpose::inference && purpose != Purpose::update; }

  /// Where ranks leave what they have in common; null: nowhere.
  BegunPlans* shared() const { return purpose == Purpose::step || purpose == Purpose::host_loss ? options.begun : nullptr; }
  BegunPlans::key_type shared_key() const { return {options.tensor_rank, purpose == Purpose::host_loss}; }

  Task with(const PlanOptions& other) const {
    return {.purpose = purpose,
            .recipe = recipe,
            .needs = needs,
            .options = other,
            .micro_batches = micro_batches,
            .has_loss = has_loss,
            .loss_seed = loss_seed,
            .beside = beside,
            .outputs = outputs,
            .name = name};
  }
};

/// `program` for one of the ranks.
void place(Program& program, const PlanOptions& options) {
  program.rank = options.rank;
  program.tensor_rank = options.tensor_rank;
  program.stage = options.stage;
}

/// The result of the passes: a plan without its instructions.
struct Planned {
  Program program;
  MemoryLayout memory;
  StepOrder order;
  std::vector<PassRecord> passes;
  RecomputeRecord recompute;
};

/// The passes of all plans, in order; a plan has those that its purpose and recipe need. A plan that has begun continues with recompute.
/// Verified before memory_plan, which only sets what links have under way, or after each.
Planned run_passes(const Task& task, BegunPlan begun, bool verifies_each) {
  using Purpose = Task::Purpose;
  const Recipe& recipe = task.recipe;
  const PlanOptions& options = task.options;
  const bool infers = task.purpose == Purpose::inference, updates = task.purpose == Purpose::update, trains = task.trains();
  const bool is_short = task.purpose == Purpose::short_micro_batch, by_host = task.purpose == Purpose::host_loss;
  const bool by_graph = trains && !by_host, has_loss = trains && task.has_loss, on_ranks = trains && recipe.data_ranks() > 1;
  const bool in_stages = trains && recipe.stages > 1, splits = trains && recipe.tensor > 1;
  // A table of several stages is refused with one, too.
  const PipelineSchedule schedule = in_stages || is_schedule_table(recipe.schedule) ? schedule_of(recipe) : PipelineSchedule();
  const Program* const beside = task.beside == nullptr ? nullptr : &task.beside->program;
  std::span<const RegionId> part_starts;
  if (options.part_starts != nullptr) part_starts = *options.part_starts;
  if (beside != nullptr) part_starts = beside->part_starts;
  const DType sent = element_of(recipe.gradient_dtype), sums = sums_of(recipe);
  const bool rounds = trains && sent != DType::f32;
  const auto in_file = recipe.arenas_in_file();
  const auto on_host = arenas_on_host(recipe, options, trains && task.needs.has_own_memory);
  // An exchange of what is copied to the device for its node ends there.
  const bool streams_exchanges = on_host[static_cast<size_t>(recipe.zero == 3 ? Arena::parameters : Arena::gradients)];
  const When casts = by_graph && !is_short ? When::first : When::every;
  std::vector<Seed> seeds;
  std::vector<SlotId> shared;
  Planned made{.program = std::move(begun.program), .memory = {}, .order = {}, .passes = std::move(begun.passes), .recompute = {}};
  const Replan memory_with = [&](Program program, const PlanOptions& other) {
    place(program, other);
    return run_passes(task.with(other), {std::move(program), made.passes}, verifies_each).memory;
  };

  const Pass list[] = {
      {"for_inference", infers, [&](Program& p) { for_inference(p, task.outputs, task.has_loss); }},
      {"gather_units", infers && options.gathers != nullptr,
       [&](Program& p) { gather_shards(p, *options.gathers, !options.parameters_on_host); }},

      {"dropout", trains, [&](Program& p) { set_dropout(p, recipe.dropout, recipe.seed); }},
      {"freeze", trains, [&](Program& p) { freeze_groups(p, recipe); }},
      {"autocast", trains, [&](Program& p) { cast_by(p, recipe, casts); }},  // 16-bit operands, fp32 sums and master weights
      {"loss_terms", has_loss && has_loss_terms(recipe), [&](Program& p) { set_loss_terms(p, recipe.label_smoothing, recipe.z_loss); }},
      {"scale_loss", has_loss, [&](Program& p) { scale_loss_by(p, recipe, task.loss_seed); }},
      {"loss_scale", trains && recipe.loss_scaler(), [](Program& p) { add_loss_scale(p); }},
      {"seed_outputs", by_host, [&](Program& p) { seeds = seed_outputs(p, has_loss); }},
      {"tensor_parallel", splits,  // this rank's part of each product
       [&](Program& p) {
         tensor_parallel(p, beside);
         find_seeds(p, seeds);
       }},
      {"autodiff", trains, [&](Program& p) { by_host ? autodiff(p, seeds) : autodiff(p); }},  // gradients are ordinary values
      {"end_tensor_parallel", splits, [](Program& p) { end_tensor_parallel(p); }},
      {"fuse_loss", by_graph, [](Program& p) { fuse_loss(p); }},  // before recompute, which then keeps the logits' gradient in their place
      {"recompute", trains, [&](Program& p) { made.recompute = recompute_by(p, recipe, options, memory_with); }},  // memory for arithmetic

      // This stage's parts of the model.
      {"pipeline_cut", in_stages, [&](Program& p) { cut_by(p, recipe, schedule, part_starts, casts); }},
      {"split_backward", in_stages && by_graph && splits_backward(schedule), [](Program& p) { split_backward(p); }},

      {"accumulate", trains, [&](Program& p) { accumulate(p, task.micro_batches); }},  // the first micro-batch writes, the others add
      {"round_gradients", rounds, [&](Program& p) { round_gradients(p, reduce_of(recipe), sent, sums); }},  // each, before it is added
      {"first_norm", by_graph && measures_noise(recipe, is_short), [](Program& p) { first_norm(p); }},
      // Who sums, who gathers, and who owns.
      {"data_parallel", on_ranks && recipe.zero == 0,
       [&](Program& p) { data_parallel(p, reduce_of(recipe), recipe.bucket, by_graph, sent); }},
      {"zero_shard", on_ranks && recipe.zero > 0, [&](Program& p) { shared = shard_by(p, recipe, options, by_graph, is_short); }},
      {"round_gradient_sums", rounds, [&](Program& p) { round_gradient_sums(p, sent); }},
      {"clip", !infers,
       [&](Program& p) {
         clip(p, recipe.clip, clip_groups(recipe, task.name), bytes_at_a_time(p, Role::gradient, on_host));
       }},  // norm, finite check, one factor
      {"share_first_norm", by_graph && (in_stages || splits) && measures_noise(recipe, is_short), [](Program& p) { share_first_norm(p); }},
      {"keep_moments", task.beside != nullptr, [&](Program& p) { keep_moments(p, task.beside->program); }},
      {"borrow_parameters", options.borrows_parameters, [](Program& p) { borrow_parameters(p); }},
      // On the layout found.
      {"update", !infers,
       [&](Program& p) {
         updates ? update_named(p, recipe, task.name) : update(p, updates_of(recipe), shared, bytes_at_a_time(p, Role::parameter, on_host));
       }},
      {"average", trains && recipe.ema_decay > 0, [&](Program& p) { average(p, recipe.ema_decay); }},

      {"fuse", !updates, [](Program& p) { fuse(p); }},
      {"tune", trains && options.tiles, [&](Program& p) { tune(p, options.tiles); }},
      // A short micro-batch is one of a step: it has nothing to pack for.
      {"pack_weights", by_graph && !is_short, [&](Program& p) { pack_weights(p, task.micro_batches, task.needs.packing); }},
      {"overlap", on_ranks && recipe.overlap == "on" && !streams_exchanges, [](Program& p) { overlap(p); }},  // exchange during backward
      {"memory_plan", true,
       [&](Program& p) {
         // A host's loss has one micro-batch under way: its next rows come after the gradients of the last ones.
         made.order = in_stages && by_graph ? order_by_schedule(p, schedule) : in_turn(p, task.micro_batches);
         made.memory = memory_plan(p, made.order, task.needs.workspace);
         if (on_host != std::array<bool, kArenas>{}) move_to_host(p, made.memory, on_host);
       }},
  };
  const auto run = [&](const Pass* first, const Pass* end) {
    Runner runner(made.program, options.skip, options.print);
    if (verifies_each) runner.verify_each();
    runner.run({first, end});
    made.passes.insert(made.passes.end(), runner.records().begin(), runner.records().end());
  };
  const Pass* const fork = std::ranges::find(list, "recompute", &Pass::name);
  if (made.passes.empty()) {
    run(std::begin(list), fork);
    if (task.shared() != nullptr && !task.shared()->contains(task.shared_key()))  // what is there may be read by other threads
      task.shared()->emplace(task.shared_key(), BegunPlan{made.program, made.passes});
  }
  const Pass* const places = std::ranges::find(list, "memory_plan", &Pass::name);
  run(fork, places);
  verify(made.program, "the last pass before memory_plan");
  run(places, std::end(list));
  if (trains) made.memory.in_file = in_file;
  return made;
}

Plan plan_by(const Task& task, const std::function<Program()>& make_program) {
  const BegunPlans* const known = task.shared();
  Planned made = named([&](bool verifies_each) {
    if (verifies_each || known == nullptr || !known->contains(task.shared_key()))
      return run_passes(task, {make_program(), {}}, verifies_each);
    BegunPlan begun = known->at(task.shared_key());
    place(begun.program, task.options);
    return run_passes(task, std::move(begun), false);
  });
  if (task.trains()) require_offload_budget(task.recipe, made.memory);
  Plan plan = make_plan(std::move(made.program), std::move(made.memory), made.order);
  plan.passes = std::move(made.passes);
  plan.recompute = std::move(made.recompute);
  if (task.trains() && has_fast_collectives(task.recipe)) use_fast_collectives(plan.exchanges);
  return plan;
}

/// `model` with micro-batches of so many rows, for one of the recipe's ranks.
Program on_rank(const Program& model, const Recipe& recipe, int64_t rows, const PlanOptions& options) {
  Program program = bind(model, rows);
  program.mesh = mesh_of(recipe);
  place(program, options);
  return program;
}

}  // namespace

Mesh mesh_of(const Recipe& recipe) {
  return {.data = static_cast<int32_t>(recipe.data_ranks()),
          .tensor = static_cast<int32_t>(recipe.tensor),
          .stage = static_cast<int32_t>(recipe.stages)};
}

PipelineSchedule schedule_of(const Recipe& recipe) {
  if (is_schedule_table(recipe.schedule)) return schedule_in(recipe);
  const auto chunks = recipe.stage_chunks > 0 ? static_cast<int32_t>(recipe.stage_chunks) : usual_chunks(recipe.schedule);
  return make_schedule(recipe.schedule, static_cast<int32_t>(recipe.stages), chunks, static_cast<int32_t>(recipe.step_rounds()));
}

Plan plan_training(const Program& model, const Recipe& recipe, const KernelNeeds& needs, const PlanOptions& options) {
  return plan_short_micro_batch(model, recipe, recipe.batch, 0, needs, options);
}

Plan plan_short_micro_batch(const Program& model, const Recipe& recipe, int64_t rows, double loss_seed, const KernelNeeds& needs,
                            const PlanOptions& options) {
  return plan_by({.purpose = rows < recipe.batch ? Task::Purpose::short_micro_batch : Task::Purpose::step,
                  .recipe = recipe,
                  .needs = needs,
                  .options = options,
                  .micro_batches = recipe.step_rounds(),
                  .loss_seed = loss_seed},
                 [&] { return on_rank(model, recipe, rows, options); });
}

Plan plan_host_loss(const Program& model, const Recipe& recipe, bool own_loss, const Plan* beside, const KernelNeeds& needs,
                    const PlanOptions& options) {
  return plan_by(
      {.purpose = Task::Purpose::host_loss,
       .recipe = recipe,
       .needs = needs,
       .options = options,
       .micro_batches = recipe.data_ranks() > 1 ? 3 : 2,  // the first, those after it, and of several ranks what they do once a step
       .has_loss = own_loss,
       .beside = beside},
      [&] { return on_rank(model, recipe, recipe.batch, options); });
}

Plan plan_update(const Program& program, const Recipe& recipe, const ParameterName& name, const KernelNeeds& needs) {
  return plan_by({.purpose = Task::Purpose::update, .recipe = recipe, .needs = needs, .options = {}, .name = name},
                 [&] { return program; });
}

Plan plan_inference(const Program& model, int64_t batch, const std::vector<std::string>& outputs, bool loss, const KernelNeeds& needs,
                    const PlanOptions& options) {
  return plan_by(
      {.purpose = Task::Purpose::inference, .recipe = {}, .needs = needs, .options = options, .has_loss = loss, .outputs = outputs},
      [&] { return bind(model, batch); });
}

}  // namespace st
