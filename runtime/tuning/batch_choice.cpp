#include "tuning/batch_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "recipe/can_offload.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

bool is_given(const Recipe& recipe, const char* key) { return std::ranges::find(recipe.given, key) != recipe.given.end(); }

Recipe of_rows(Recipe recipe, int64_t rows) {
  recipe.batch = rows;
  recipe.accumulate = recipe.global_batch / rows;
  recipe.micro_batches = 0;
  return recipe;
}

std::vector<int64_t> divisors_of(int64_t n) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// Bytes beside the parameters that a step of such micro-batches and an evaluation take, whose last rows may have a plan of their own.
/// Packed weights are left out: a step does without where they do not fit.
int64_t bytes_of_step(const Model& model, Recipe recipe, PlanOptions options) {
  const int threads = recipe.threads > 0 ? static_cast<int>(recipe.threads) : model.context().threads();
  const KernelNeeds needs = kernel_needs(model.context().backend(), threads);
  recipe.accumulate = std::min<int64_t>(recipe.accumulate, 2);  // a third micro-batch takes no more memory than a second
  options.print = {};
  options.skip.emplace_back("pack_weights");
  options.memory = model.context().spare_memory();
  options.parameters_on_host = model.is_on_host() || moves_parameters(recipe, needs.has_own_memory);
  PlanOptions for_evaluation;
  for_evaluation.parameters_on_host = options.parameters_on_host;
  const MemoryLayout step = plan_training(model.program(), recipe, needs, options).memory;
  const MemoryLayout evaluation = plan_inference(model.program(), recipe.batch, {}, true, needs, for_evaluation).memory;
  return step.beside_parameters() + 2 * evaluation.beside_parameters();
}

}  // namespace

Recipe with_batch_decided(const Model& model, Recipe recipe, const PlanOptions& options) {
  if (recipe.batch > 0) {
    if (recipe.global_batch == 0) return recipe;
    const bool follows = !is_given(recipe, "accumulate") && !is_given(recipe, "micro_batches");
    if (follows) recipe.accumulate = std::max<int64_t>(1, recipe.global_batch / recipe.batch / recipe.data_ranks());
    const int64_t micro_batches = recipe.step_micro_batches();
    const double made = static_cast<double>(recipe.batch) * static_cast<double>(micro_batches);
    check(made == static_cast<double>(recipe.global_batch), "recipe: batch ", recipe.batch, " x ", micro_batches, " micro-batches on ",
          recipe.ranks, recipe.ranks == 1 ? " rank" : " ranks", " makes ", made, " sequences per step, but global_batch is ",
          recipe.global_batch,
          follows ? text("; give a multiple of ", recipe.batch) : std::string("; leave accumulate and micro_batches out, or global_batch"));
    return recipe;
  }
  check(recipe.global_batch > 0, "recipe: batch auto needs global_batch, the number of sequences per step");
  check(recipe.accumulate == 1 && recipe.micro_batches == 0, "recipe: batch is auto, so accumulate follows from it, got ",
        recipe.step_micro_batches(), "; leave accumulate and micro_batches out");
  check(recipe.ranks == 1 && recipe.stages == 1 && recipe.tensor == 1, "recipe: batch auto works on 1 rank only, got ",
        std::max(recipe.ranks, recipe.stages * recipe.tensor), " ranks; give a batch");
  check(static_cast<bool>(model.program().loss_sum), "recipe: batch auto needs a model with its own loss, to plan a step; give a batch");

  const std::vector<int64_t> divisors = divisors_of(recipe.global_batch);
  const int64_t there = model.context().spare_memory();
  int64_t bytes = 0;
  const auto fits = [&](int64_t rows) {
    bytes = bytes_of_step(model, of_rows(recipe, rows), options);
    return bytes <= there;
  };
  // A step of more rows takes no less memory.
  const auto first_too_large = std::ranges::partition_point(divisors, fits);
  if (first_too_large == divisors.begin()) {
    bytes = bytes_of_step(model, of_rows(recipe, 1), options);
    fail(Code::out_of_memory,
         text("recipe: batch is auto, but not even micro-batches of 1 row fit: a step needs ", text_of_bytes(bytes), " (", bytes,
              " bytes), ", text_of_bytes(there), " is available; use a smaller model or context, or recompute"));
  }
  return of_rows(std::move(recipe), *std::prev(first_too_large));
}

}  // namespace st
