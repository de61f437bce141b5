#include "recipe/recipe_changes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "plan/pipeline_schedule.h"

namespace st {
namespace {

/// Recompute policies, from the one that repeats least.
constexpr std::string_view kRecompute[] = {"\"none\"", "\"attention\"", "\"blocks\"", "\"full\""};

/// Keys that change what a step computes.
constexpr std::string_view kNumericKeys[] = {"precision", "residual_dtype", "gradient_dtype", "accumulate_dtype", "optimizer"};

KeyChange change(const Recipe& recipe, const std::string& key, std::string value) { return {key, std::move(value), recipe.get(key)}; }

std::string plain(const std::string& json) { return json.size() > 1 && json.front() == '"' ? json.substr(1, json.size() - 2) : json; }

}  // namespace

std::vector<KeyChanges> changes_to_try(const Recipe& recipe) {
  std::vector<KeyChanges> all;
  const auto one = [&](const char* key, const std::string& value) { all.push_back({change(recipe, key, value)}); };
  const auto number = [](int64_t value) { return std::to_string(value); };
  const auto* const stands = std::ranges::find(kRecompute, recipe.get("recompute"));
  if (stands != std::end(kRecompute))
    for (const auto* policy = stands + 1; policy != std::end(kRecompute); ++policy) one("recompute", std::string(*policy));
  const int64_t data = recipe.data_ranks();
  if (data > 1)
    for (int64_t zero = recipe.zero + 1; zero <= 3; ++zero) one("zero", number(zero));
  if (recipe.batch > 1 && recipe.batch % 2 == 0) {
    KeyChanges halved = {change(recipe, "batch", number(recipe.batch / 2))};
    if (recipe.micro_batches > 0)
      halved.push_back(change(recipe, "micro_batches", number(recipe.micro_batches * 2)));
    else
      halved.push_back(change(recipe, "accumulate", number(recipe.accumulate * 2)));
    all.push_back(std::move(halved));
  }
  if (recipe.offload == "none") one("offload", "\"optimizer\"");
  if (recipe.offload != "parameters" && recipe.offload != "gradients" && recipe.zero == 0) one("offload", "\"parameters\"");
  if (recipe.offload != "gradients") one("offload", "\"gradients\"");
  if (data % 2 == 0) {
    const auto twice = [&](const char* key, int64_t value) {
      KeyChanges made = {change(recipe, key, number(value * 2))};
      if (recipe.micro_batches == 0) made.push_back(change(recipe, "accumulate", number(recipe.accumulate * 2)));
      all.push_back(std::move(made));
    };
    twice("tensor", recipe.tensor);
    if (!is_schedule_table(recipe.schedule)) twice("stages", recipe.stages);
  }
  if (data > 1 && recipe.reduce == "micro" && recipe.step_rounds() > 1) one("reduce", "\"step\"");
  if (data > 1 && recipe.gradient_dtype == "fp32") one("gradient_dtype", "\"bf16\"");
  if (recipe.gradient_dtype != "fp32" && recipe.accumulate_dtype == "fp32") one("accumulate_dtype", recipe.get("gradient_dtype"));
  if (data > 1)
    all.push_back({change(recipe, recipe.micro_batches > 0 ? "micro_batches" : "accumulate",
                          number(4 * (recipe.micro_batches > 0 ? recipe.micro_batches : recipe.accumulate)))});
  if (recipe.precision == "fp32")
    one("precision", "\"bf16\"");
  else if (recipe.residual_dtype == "fp32")
    one("residual_dtype", recipe.get("precision"));
  if (recipe.optimizer == "adamw" || recipe.optimizer == "adam") one("optimizer", "\"adamw-8bit\"");
  return all;
}

bool changes_numbers(const KeyChanges& changes) {
  return std::ranges::any_of(changes,
                             [](const KeyChange& of) { return std::ranges::find(kNumericKeys, of.key) != std::end(kNumericKeys); });
}

void add_changes(KeyChanges& to, const KeyChanges& changes) {
  for (const KeyChange& of : changes) {
    const auto found = std::ranges::find(to, of.key, &KeyChange::key);
    if (found == to.end())
      to.push_back(of);
    else
      found->value = of.value;
  }
}

std::string text_of(const KeyChanges& changes) {
  std::string out;
  for (const KeyChange& change : changes) {
    const bool is_number = !change.value.empty() && change.value.front() != '"';
    out += (out.empty() ? "" : ", ") + change.key + " " + (is_number ? plain(change.before) + " -> " : "") + plain(change.value);
  }
  return out;
}

}  // namespace st
