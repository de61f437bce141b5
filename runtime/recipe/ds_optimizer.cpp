#include "recipe/ds_optimizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/text.h"

namespace st {
namespace {

/// DeepSpeed's type in lower case, as it compares them; our optimizer, or what to say instead of it; the params of PyTorch's or DeepSpeed's
/// that are keys of ours.
struct Row {
  const char *type, *ours, *instead, *params;
};
constexpr Row kRows[] = {
    {"adam", "adamw", "", "betas eps"},  // adam_w_mode is true where it is not given
    {"adamw", "adamw", "", "betas eps"},
    {"lion", "lion", "", "betas"},
    {"adagrad", "adagrad", "", "eps lr_decay initial_accumulator_value"},
    {"sgd", "sgd", "", "momentum dampening nesterov"},
    {"rmsprop", "rmsprop", "", "eps alpha momentum centered"},
    {"muon", "muon", "", "betas eps momentum nesterov ns_steps"},
    {"lamb", "", "AdamW", ""},
    {"fusedlamb", "", "AdamW", ""},
    {"onebitadam", "", "Adam", ""},
    {"zerooneadam", "", "Adam", ""},
    {"onebitlamb", "", "AdamW", ""},
    {"muadam", "", "Adam", ""},
    {"muadamw", "", "AdamW", ""},
    {"musgd", "", "SGD", ""},
};
constexpr const char* kTypes = "Adam, AdamW, Lion, Adagrad, SGD, RMSprop or Muon";

const Row& row_of(const std::string& type) {
  const std::string lower = lower_case(type);
  std::vector<std::string> known;
  for (const Row& row : kRows) {
    if (lower == row.type) {
      ds_require(*row.ours != '\0', {"optimizer.type ", type, " is not supported; use ", row.instead, ", or one of ", kTypes});
      return row;
    }
    if (*row.ours != '\0') known.emplace_back(row.type);
  }
  const std::string near = nearest(lower, known);
  refuse_ds_type("optimizer", type, nearest(lower, known), kTypes);
}

void take_betas(DsSection& params, DsRecipe& recipe) {
  const Json* betas = params.find("betas");
  if (betas == nullptr) return;
  ds_check(betas->is(Json::Kind::list) && betas->list().size() == 2,
           {params.name_of("betas"), " must be a list of two numbers, such as [0.9, 0.999], got ", betas->dump()});
  for (size_t i = 0; i < 2; ++i) {
    const Json& beta = betas->list()[i];
    ds_check(beta.is_number() && beta.number() >= 0 && beta.number() < 1,
             {params.name_of("betas"), " must be two numbers in [0, 1), got ", betas->dump()});
    recipe.set(i == 0 ? "beta1" : "beta2", beta.dump());
  }
}

/// Adam alone: which of the two Adams it is, and the implementation, whose bits are ours anyway. Returns the weight decay where none is
/// given.
const char* take_adam_mode(DsSection& params, const Row& row, DsRecipe& recipe) {
  const bool is_torch = params.flag("torch_adam", false);
  const bool decouples = params.flag("adam_w_mode", true) || std::string_view(row.type) == "adamw";
  if (!decouples) recipe.set("optimizer", "\"adam\"");
  ds_require(!params.flag("amsgrad", false), {params.name_of("amsgrad"), " is not supported; leave it out"});
  ds_require(params.flag("bias_correction", true), {params.name_of("bias_correction"), " false is not supported; leave it out"});
  return is_torch && decouples ? "0.01" : "0.0";  // torch.optim.AdamW's
}

}  // namespace

double read_ds_optimizer(DsSection& file, DsRecipe& recipe) {
  DsSection optimizer = file.section("optimizer");
  constexpr double kAdamRate = 1e-3;
  if (!optimizer.is_there()) return kAdamRate;
  const auto type = optimizer.word("type");
  ds_check(type.has_value(), {"optimizer.type is missing; give ", kTypes});
  const Row& row = row_of(*type);
  optimizer.skip({"legacy_fusion"});
  DsSection params = optimizer.section("params");
  optimizer.finish();

  recipe.set("optimizer", text("\"", row.ours, "\""));
  const auto rate = params.number("lr");
  const std::string_view name = row.ours;
  if (rate) recipe.set("lr", json_of(*rate));
  if (name == "muon") {  // of the AdamW beside it
    recipe.set("beta2", "0.95");
    recipe.set("epsilon", "1e-10");
  }
  std::string weight_decay = name == "muon" ? "0.0" : "";  // what is not named here has our default, which is theirs
  if (std::string_view(row.type).starts_with("adam")) weight_decay = take_adam_mode(params, row, recipe);
  const auto given_decay = params.number("weight_decay");
  if (given_decay) weight_decay = json_of(*given_decay);
  if (!weight_decay.empty() && !params.is_auto("weight_decay")) recipe.set("weight_decay", weight_decay);

  for (const std::string& param : words_of(row.params)) {
    if (param == "betas") {
      take_betas(params, recipe);
      continue;
    }
    const std::string ours = param == "eps" ? "epsilon" : param == "alpha" ? "beta2" : param == "lr_decay" ? "rate_decay" : param;
    if (const Json* value = params.find(param)) recipe.set(ours.c_str(), value->dump());
  }
  ds_require(!params.flag("maximize", false), {params.name_of("maximize"), " is not supported; leave it out"});
  params.skip({"max_grad_norm", "fused", "foreach", "capturable", "differentiable", "set_grad_none", "use_fused", "fp32_optimizer_states"});
  params.finish();
  return rate.value_or(name == "lion" ? 1e-4 : name == "adagrad" || name == "rmsprop" ? 1e-2 : kAdamRate);
}

}  // namespace st
