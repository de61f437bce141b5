// The recipe: how to train. One table, recipe.def, makes its keys; one list, recipe.cpp, makes a plan of a model and it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "optim/choose_optimizer.h"
#include "optim/loss_scaler.h"
#include "optim/parameter_groups.h"
#include "passes/tune.h"
#include "plan/plan.h"

namespace st {

struct Recipe {
#define ST_RECIPE(type, name, standard, allowed, help) type name = standard;
#include "train/recipe.def"
#undef ST_RECIPE

  /// Keys that were given by merge() or set(): what is not here follows the optimizer's defaults.
  std::vector<std::string> given = {};

  /// What a file of DeepSpeed's says that takes no effect here, a line each; a trainer logs them once.
  std::vector<std::string> notes = {};

  /// Takes every key of a JSON object, or what a ds_config.json of DeepSpeed's says in our keys (ds_config.h). Throws invalid_argument:
  /// unknown key (the nearest is named), a value that its domain does not have, keys that contradict each other, a lr_schedule without
  /// its length; one that set() makes is refused by the trainer.
  void merge(std::string_view json);
  /// One key; `value` is JSON ("12", "\"adamw\"").
  void set(std::string_view key, std::string_view value);
  std::string get(std::string_view key) const;
  std::string json() const;

  /// How each parameter is updated.
  NamedOptimizer update() const;

  /// K: micro-batches of one optimizer step. Throws invalid_argument when accumulate and micro_batches contradict each other.
  int64_t step_micro_batches() const;
  /// Of micro-batches, one a rank: in round g rank r computes micro-batch g * ranks + r, when there is one.
  int64_t step_rounds() const;
  /// What lies in a file in offload_folder. Throws invalid_argument where there is a folder and nothing to offload.
  std::array<bool, kArenas> arenas_in_file() const;
  /// Of precision fp16; without one, nothing is scaled. Throws invalid_argument when the keys contradict each other.
  std::optional<LossScaler> loss_scaler() const;
};

struct RecipeKey {
  std::string name, type, standard, allowed, help;  // type: "text", "integer", "real", "boolean" or "list"; standard: JSON
  std::string domain;                               // allowed, as errors have it: "a number in [0, 1)"
};
const std::vector<RecipeKey>& recipe_keys();

/// What planning may be asked besides: passes to leave out, and where each pass's result is printed.
struct PlanOptions {
  std::vector<std::string> skip;
  std::function<void(const std::string& pass, const std::string& text)> print;
  TileChoice tiles = {};  // of a training step's products; empty: the backend's defaults

  int32_t rank = 0;             // whose plan it is, of the recipe's ranks
  bool shares_masters = false;  // ranks are threads: under ZeRO what they may share of the parameters lies once for all (share_masters)

  bool keeps_master_pieces = false;  // ranks are a host's: under ZeRO-1 and -2 each has its pieces of the masters alone

  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  int64_t memory = kUnlimited;  // bytes that a step may take beside the parameters: what recompute auto is to fit
  int32_t sharers = 1;  // ranks of this process that take their part one after another, this one first: recompute auto leaves theirs
  const std::vector<RegionId>* recompute_scopes = nullptr;  // in place of the recipe's policy; borrowed
  const Program* gathers =
      nullptr;  // of a forward pass: a step's program of a rank, whose pieces of the parameters scopes gather; borrowed
};

/// The plan of one training step of `model` (symbolic) with micro-batches of recipe.batch.
Plan plan_training(const Program& model, const Recipe& recipe, const Backend& backend, int threads, const PlanOptions& options = {});

/// The plan of a step's last micro-batch when it has only `rows` rows, as one of the step that plan_training makes: backward is seeded with
/// that step's `loss_seed`.
Plan plan_short_micro_batch(const Program& model, const Recipe& recipe, int64_t rows, double loss_seed, const Backend& backend, int threads,
                            const PlanOptions& options = {});

/// The plan of a step whose loss the host computes from the outputs: micro-batches of recipe.batch, of which the host runs as many as it
/// likes; the plan's second one stands for all after the first. Of several ranks a third has what they exchange once a step. own_loss: the
/// model's own loss may be used instead (seed_outputs). `beside`: another training plan of the model, whose moments this one's steps go on
/// with; null: none.
Plan plan_host_loss(const Program& model, const Recipe& recipe, bool own_loss, const Plan* beside, const Backend& backend, int threads,
                    const PlanOptions& options = {});

/// The name that a parameter's groups go by.
using ParameterName = std::function<std::string_view(const Slot& parameter)>;

/// The plan of clip and update alone, over a program of nothing but parameters, their gradients ("gradient.<slot>") and
/// step.gradient_unit. Every matrix counts as a weight of products, since there are no products to tell. In a sharded program (zero_shard)
/// this rank's shards are updated; the host gathers parameters and copies.
Plan plan_update(Program program, const Recipe& recipe, const ParameterName& name, const Backend& backend, int threads);

/// The plan of a forward pass over `batch` rows that leaves the named outputs and, if asked for, the loss.
Plan plan_inference(const Program& model, int64_t batch, const std::vector<std::string>& outputs, bool loss, const Backend& backend,
                    int threads, const PlanOptions& options = {});

}  // namespace st
