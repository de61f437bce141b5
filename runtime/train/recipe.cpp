#include "train/recipe.h"

#include <numeric>
#include <utility>

#include "base/error.h"
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
#include "passes/memory_plan.h"
#include "passes/overlap.h"
#include "passes/pack_weights.h"
#include "passes/scale_loss.h"
#include "passes/scope_patterns.h"
#include "passes/seed_outputs.h"
#include "passes/update.h"
#include "passes/zero_shard.h"
#include "train/recompute_policy.h"

namespace st {
namespace {

std::vector<Type> types_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (const Value v : values) types.push_back(graph.type(v));
  return types;
}

WorkspaceNeed workspace_of(const Backend& backend, int threads) {
  return [&backend, threads](const Program&, const Section& section, const Node& node) -> int64_t {
    const auto& ask = backend.kernels()[static_cast<size_t>(node.op)].workspace;
    return ask == nullptr ? 0 : ask(types_of(section.graph, node.in), node.out, node.attrs, threads);
  };
}

PackingNeed packing_need_of(const Backend& backend) {
  return [&backend](const Program&, const Section& section, const Node& node) -> int64_t {
    const auto& ask = backend.kernels()[static_cast<size_t>(node.op)].packed_bytes;
    return ask == nullptr ? 0 : ask(types_of(section.graph, node.in), node.attrs);
  };
}

DType element_of(const std::string& precision) {
  if (precision == "bf16") return DType::bf16;
  return precision == "fp16" ? DType::f16 : DType::f32;
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

ClipGroups clip_groups(const Recipe& recipe, const ParameterName& name = slot_name) {
  ClipGroups groups;
  for (const ParameterGroup& group : recipe.groups.all()) groups.max_norms.push_back(group.clip.value_or(0));
  groups.group_of = [&recipe, name](const Slot& parameter) {
    return recipe.groups.of(name(parameter)).clip ? recipe.groups.index_of(name(parameter)) : -1;
  };
  return groups;
}

ChooseOptimizer updates_of(const Recipe& recipe) {
  return [optimizer = recipe.update()](const Slot& parameter, bool is_weight) {
    return optimizer.choose(parameter.name, parameter.type, is_weight);
  };
}

void cast_by(Program& program, const Recipe& recipe, When when) {
  std::vector<RegionId> wide;
  if (recipe.fp32_scopes != "none") wide = scopes_matching(program, recipe.fp32_scopes, ScopeKind::any, "fp32_scopes", ". Or use none");
  autocast(program, element_of(recipe.precision), when, wide);
}

/// Parameters, of which another program of the model has pieces, are these, and lent. Slots of parameters are the same in both.
void gather_shards(Program& program, const Program& of) {
  program.mesh = of.mesh;
  program.rank = of.rank;
  program.cuts.resize(program.slots.size());
  for (size_t s = 0; s < of.slots.size() && s < program.slots.size(); ++s)
    if (of.slots[s].role == Role::parameter && of.slots[s].whole) program.cuts[s] = of.cuts[s];
  gather_units(program);
  for (Slot& slot : program.slots) slot.lent = slot.lent || (slot.role == Role::parameter && slot.whole);
}

/// Takes the program over from `runner`, which looks at it until then.
Plan finish(Program& program, Runner& runner, const Backend& backend, int threads, int64_t micro_batches, RecomputeRecord recomputed = {}) {
  MemoryLayout memory;
  runner.run("memory_plan", [&](Program& p) { memory = memory_plan(p, workspace_of(backend, threads)); });
  Plan plan = make_plan(std::move(program), std::move(memory), micro_batches);
  plan.passes = runner.records();
  plan.recompute = std::move(recomputed);
  return plan;
}

/// loss_seed 0: that of these rows.
Plan plan_step(const Program& model, const Recipe& recipe, int64_t rows, double loss_seed, const Backend& backend, int threads,
               const PlanOptions& options) {
  const int64_t micro_batches = recipe.step_micro_batches(), rounds = recipe.step_rounds();
  const bool is_short = rows < recipe.batch;
  Program program = bind(model, rows);
  program.mesh.data = static_cast<int32_t>(recipe.ranks);
  program.rank = options.rank;
  Runner runner(program, options.skip, options.print);
  runner.run("dropout", [&](Program& p) { set_dropout(p, recipe.dropout, recipe.seed); });
  runner.run("freeze", [&](Program& p) { freeze_groups(p, recipe); });
  runner.run("autocast", [&](Program& p) {
    cast_by(p, recipe, is_short ? When::every : When::first);
  });  // 16-bit operands, fp32 sums and master weights
  if (has_loss_terms(recipe)) runner.run("loss_terms", [&](Program& p) { set_loss_terms(p, recipe.label_smoothing, recipe.z_loss); });
  runner.run("scale_loss", [&](Program& p) {
    scale_loss(p, micro_batches);
    if (loss_seed != 0) p.loss_seed = loss_seed;
  });
  if (recipe.loss_scaler()) runner.run("loss_scale", [](Program& p) { add_loss_scale(p); });
  runner.run("autodiff", [](Program& p) { autodiff(p); });    // gradients are ordinary values
  runner.run("fuse_loss", [](Program& p) { fuse_loss(p); });  // before recompute, which then keeps the logits' gradient in their place
  RecomputeRecord recomputed;
  const auto replan = [&](const PlanOptions& other) { return plan_step(model, recipe, rows, loss_seed, backend, threads, other); };
  runner.run("recompute", [&](Program& p) { recomputed = recompute_by(p, recipe, options, replan); });  // memory for arithmetic

  runner.run("accumulate", [&](Program& p) { accumulate(p, rounds); });  // the first micro-batch writes, the others add
  // A step of one micro-batch, and a short one, tell no noise; but ranks exchange the same in all of them.
  if (recipe.gradient_noise_scale && micro_batches > 1 && (!is_short || recipe.ranks > 1))
    runner.run("first_norm", [](Program& p) { first_norm(p); });
  if (recipe.ranks > 1 && recipe.zero == 0)
    runner.run("data_parallel", [&](Program& p) { data_parallel(p, reduce_of(recipe), recipe.bucket); });  // who sums, who gathers
  std::vector<SlotId> shared;
  if (recipe.ranks > 1 && recipe.zero > 0)
    runner.run("zero_shard", [&](Program& p) {  // and who owns
      zero_shard(p, recipe.zero, reduce_of(recipe), recipe.bucket, updates_of(recipe));
      if (options.shares_masters) shared = share_masters(p);
      if (options.keeps_master_pieces) keep_master_pieces(p, is_short);
    });
  runner.run("clip", [&](Program& p) { clip(p, recipe.clip, clip_groups(recipe)); });  // norm, finite check, one factor
  runner.run("update", [&](Program& p) { update(p, updates_of(recipe), shared); });    // on the layout found
  if (recipe.ema_decay > 0) runner.run("average", [&](Program& p) { average(p, recipe.ema_decay); });
  runner.run("fuse", [](Program& p) { fuse(p); });
  if (options.tiles) runner.run("tune", [&](Program& p) { tune(p, options.tiles); });
  // A short micro-batch is one of a step: it has nothing to pack for.
  if (!is_short) runner.run("pack_weights", [&](Program& p) { pack_weights(p, rounds, packing_need_of(backend)); });
  if (recipe.ranks > 1 && recipe.overlap == "on") runner.run("overlap", [](Program& p) { overlap(p); });  // exchange beside backward
  Plan plan = finish(program, runner, backend, threads, rounds, std::move(recomputed));
  plan.memory.in_file = recipe.arenas_in_file();
  return plan;
}

}  // namespace

Plan plan_training(const Program& model, const Recipe& recipe, const Backend& backend, int threads, const PlanOptions& options) {
  return plan_step(model, recipe, recipe.batch, 0, backend, threads, options);
}

Plan plan_short_micro_batch(const Program& model, const Recipe& recipe, int64_t rows, double loss_seed, const Backend& backend, int threads,
                            const PlanOptions& options) {
  return plan_step(model, recipe, rows, loss_seed, backend, threads, options);
}

Plan plan_host_loss(const Program& model, const Recipe& recipe, bool own_loss, const Plan* beside, const Backend& backend, int threads,
                    const PlanOptions& options) {
  // The first, those after it, and of several ranks what they do once a step.
  const int64_t micro_batches = recipe.ranks > 1 ? 3 : 2;
  Program program = bind(model, recipe.batch);
  program.mesh.data = static_cast<int32_t>(recipe.ranks);
  program.rank = options.rank;
  Runner runner(program, options.skip, options.print);
  std::vector<Seed> seeds;
  runner.run("dropout", [&](Program& p) { set_dropout(p, recipe.dropout, recipe.seed); });
  runner.run("freeze", [&](Program& p) { freeze_groups(p, recipe); });
  runner.run("autocast", [&](Program& p) { cast_by(p, recipe, When::every); });
  if (own_loss && has_loss_terms(recipe))
    runner.run("loss_terms", [&](Program& p) { set_loss_terms(p, recipe.label_smoothing, recipe.z_loss); });
  if (own_loss) runner.run("scale_loss", [&](Program& p) { scale_loss(p, recipe.step_micro_batches()); });
  if (recipe.loss_scaler()) runner.run("loss_scale", [](Program& p) { add_loss_scale(p); });
  runner.run("seed_outputs", [&](Program& p) { seeds = seed_outputs(p, own_loss); });
  runner.run("autodiff", [&](Program& p) { autodiff(p, seeds); });
  RecomputeRecord recomputed;
  const auto replan = [&](const PlanOptions& other) { return plan_host_loss(model, recipe, own_loss, beside, backend, threads, other); };
  runner.run("recompute", [&](Program& p) { recomputed = recompute_by(p, recipe, options, replan); });
  runner.run("accumulate", [&](Program& p) { accumulate(p, micro_batches); });
  if (recipe.ranks > 1 && recipe.zero == 0)
    runner.run("data_parallel", [&](Program& p) { data_parallel(p, reduce_of(recipe), recipe.bucket, false); });
  if (recipe.ranks > 1 && recipe.zero > 0)
    runner.run("zero_shard", [&](Program& p) { zero_shard(p, recipe.zero, reduce_of(recipe), recipe.bucket, updates_of(recipe), false); });
  runner.run("clip", [&](Program& p) { clip(p, recipe.clip, clip_groups(recipe)); });
  if (beside != nullptr) runner.run("keep_moments", [&](Program& p) { keep_moments(p, beside->program); });
  runner.run("update", [&](Program& p) { update(p, updates_of(recipe)); });
  if (recipe.ema_decay > 0) runner.run("average", [&](Program& p) { average(p, recipe.ema_decay); });
  runner.run("fuse", [](Program& p) { fuse(p); });
  if (options.tiles) runner.run("tune", [&](Program& p) { tune(p, options.tiles); });
  if (recipe.ranks > 1 && recipe.overlap == "on") runner.run("overlap", [](Program& p) { overlap(p); });
  Plan plan = finish(program, runner, backend, threads, micro_batches, std::move(recomputed));
  plan.memory.in_file = recipe.arenas_in_file();
  return plan;
}

Plan plan_update(Program program, const Recipe& recipe, const ParameterName& name, const Backend& backend, int threads) {
  Runner runner(program, {}, {});
  runner.run("clip", [&](Program& p) { clip(p, recipe.clip, clip_groups(recipe, name)); });
  std::vector<SlotId> lent(program.slots.size());  // who has pieces of them gathers them
  std::iota(lent.begin(), lent.end(), 0);
  runner.run("update", [&](Program& p) {
    const auto choose = [&, optimizer = recipe.update()](const Slot& parameter, bool) {
      return optimizer.choose(name(parameter), parameter.type, true);
    };
    update(p, choose, lent);
  });
  return finish(program, runner, backend, threads, 1);
}

Plan plan_inference(const Program& model, int64_t batch, const std::vector<std::string>& outputs, bool loss, const Backend& backend,
                    int threads, const PlanOptions& options) {
  Program program = bind(model, batch);
  Runner runner(program, options.skip, options.print);
  runner.run("for_inference", [&](Program& p) { for_inference(p, outputs, loss); });
  if (options.gathers != nullptr) runner.run("gather_units", [&](Program& p) { gather_shards(p, *options.gathers); });
  runner.run("fuse", [](Program& p) { fuse(p); });
  return finish(program, runner, backend, threads, 1);
}

}  // namespace st
