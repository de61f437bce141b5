// The recipe: how to train. recipe.def is the table of its keys; recipe.cpp is the pass list that turns a model and a recipe into a plan.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/choose_optimizer.h"
#include "optim/loss_scaler.h"
#include "optim/parameter_groups.h"
#include "passes/kernel_needs.h"
#include "passes/tune.h"
#include "plan/pipeline_schedule.h"
#include "plan/plan.h"

namespace st {

struct Recipe {
#define ST_RECIPE(type, name, standard, allowed, help) type name = standard;
#include "recipe/recipe.def"
#undef ST_RECIPE

  /// Keys given by merge() or set(); other keys take the optimizer's defaults.
  std::vector<std::string> given = {};

  /// Settings of a DeepSpeed file that have no effect here, one line each; a trainer logs them once.
  std::vector<std::string> notes = {};

  /// Takes every key of a JSON object, or a DeepSpeed ds_config.json, translated to recipe keys (ds_config.h). Throws invalid_argument:
  /// unknown key (suggests the nearest), a value outside its domain, keys that contradict each other, a lr_schedule without its length
  /// (after set(), the trainer refuses it).
  void merge(std::string_view json);
  /// Sets one key; `value` is JSON ("12", "\"adamw\"").
  void set(std::string_view key, std::string_view value);
  std::string get(std::string_view key) const;
  std::string json() const;

  /// The update of each parameter.
  NamedOptimizer update() const;

  /// Ranks along the data axis. Throws invalid_argument, with the product, if ranks is not a multiple of stages.
  int64_t data_ranks() const;
  /// K: micro-batches of one optimizer step. Throws invalid_argument if accumulate and micro_batches contradict each other.
  int64_t step_micro_batches() const;
  /// Rounds of a step: in round g data rank r computes micro-batch g * data_ranks() + r, if there is one.
  int64_t step_rounds() const;
  /// The arenas that offload keeps outside of a device's memory.
  std::array<bool, kArenas> arenas_offloaded() const;
  /// Those in a file in offload_folder. Throws invalid_argument for a folder without anything to offload.
  std::array<bool, kArenas> arenas_in_file() const;
  /// The loss scaler of precision fp16; empty: no loss scaling. Throws invalid_argument if the keys contradict each other.
  std::optional<LossScaler> loss_scaler() const;
};

struct RecipeKey {
  std::string name, type, standard, allowed, help;  // type: "text", "integer", "real", "boolean" or "list"; standard: JSON
  std::string domain;                               // allowed, worded for errors: "a number in [0, 1)"
};
const std::vector<RecipeKey>& recipe_keys();

/// A step's program before the first pass that depends on the rank along the data axis or on the stage, and the passes that made it.
struct BegunPlan {
  Program program;
  std::vector<PassRecord> passes;
};
/// By rank along the tensor axis, and whether the host computes the loss. Short micro-batches have no part in it.
using BegunPlans = std::map<std::pair<int32_t, bool>, BegunPlan>;

/// Options of planning: passes to skip, a callback that prints each pass's result, the rank and its sharding.
struct PlanOptions {
  std::vector<std::string> skip;
  std::function<void(const std::string& pass, const std::string& text)> print;
  TileChoice tiles = {};  // for the products of a training step; empty: the backend's defaults

  int32_t rank = 0;                 // the rank that the plan is for, along the data axis,
  int32_t tensor_rank = 0;          // along the tensor axis,
  int32_t stage = 0;                // and along the stage axis
  bool borrows_parameters = false;  // the stage's parameters are in the model of this process
  bool shares_masters = false;      // ranks are threads: under ZeRO they share one copy of the master parameters (share_masters)

  bool parameters_on_host = false;  // of a model on a device: they are in the host's memory (recipe key offload)

  bool shards_masters = false;     // ranks are a host's: under ZeRO-1 and -2 each keeps only its shards of the masters
  bool may_shard_masters = false;  // the same with another recipe, where can_shard_masters() says so (can_shard_masters.h)

  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  int64_t memory = kUnlimited;  // bytes that a step may use in addition to the parameters; recompute auto must fit in them
  int32_t sharers = 1;          // ranks of this process that still have to allocate, this one included; recompute auto leaves their share
  const std::vector<RegionId>* recompute_scopes = nullptr;  // overrides the recipe's policy; borrowed
  const std::vector<RegionId>* part_starts = nullptr;       // the pipeline's parts of another plan (Program::part_starts); borrowed
  BegunPlans* begun = nullptr;       // of the ranks of one step: filled by the first rank planned, read by the others; borrowed
  const Program* gathers = nullptr;  // for a forward pass: a rank's program of a step, which defines the shards to gather; borrowed
};

/// How the recipe's ranks are laid out.
Mesh mesh_of(const Recipe& recipe);
/// The order of a step's rounds on its stages. Throws invalid_argument like make_schedule(), or with both numbers if a table is for other
/// stages or micro-batches.
PipelineSchedule schedule_of(const Recipe& recipe);

/// The plan of one training step of `model` (symbolic) with micro-batches of recipe.batch.
Plan plan_training(const Program& model, const Recipe& recipe, const KernelNeeds& needs, const PlanOptions& options = {});

/// The plan of a step's last micro-batch if it has only `rows` rows. Backward is seeded with `loss_seed`, that of the step's
/// plan_training(). PlanOptions::part_starts keeps that plan's parts: balanced by fewer rows, they could differ.
Plan plan_short_micro_batch(const Program& model, const Recipe& recipe, int64_t rows, double loss_seed, const KernelNeeds& needs,
                            const PlanOptions& options = {});

/// The plan of a step whose loss the host computes from the outputs.
///   micro-batches  of recipe.batch rows, any number: the plan has the first, and a second that stands for all later ones; with
///                  several ranks, a third one with the collectives that run once per step
///   own_loss       the model's own loss may be used instead (seed_outputs)
///   beside         another training plan of the model, whose moments this plan shares; null: none
Plan plan_host_loss(const Program& model, const Recipe& recipe, bool own_loss, const Plan* beside, const KernelNeeds& needs,
                    const PlanOptions& options = {});

/// The name by which a parameter's group is found.
using ParameterName = std::function<std::string_view(const Slot& parameter)>;

/// The plan of clip and update only, for a program of parameters, their gradients ("gradient.<slot>") and step.gradient_unit. Every matrix
/// counts as a weight of products, because there are no products to find out. If the program is sharded (zero_shard), it updates this
/// rank's shards, and the host gathers parameters and copies.
Plan plan_update(const Program& program, const Recipe& recipe, const ParameterName& name, const KernelNeeds& needs);

/// The plan of a forward pass over `batch` rows that computes the named outputs and, if `loss`, the loss.
Plan plan_inference(const Program& model, int64_t batch, const std::vector<std::string>& outputs, bool loss, const KernelNeeds& needs,
                    const PlanOptions& options = {});

}  // namespace st
