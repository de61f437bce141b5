#include "torch_groups.h"

#include <algorithm>
#include <utility>

namespace cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTorchClasses[] = {
    {"adamw", "AdamW"}, {"adam", "Adam"}, {"sgd", "SGD"}, {"rmsprop", "RMSprop"}, {"adagrad", "Adagrad"}, {"adafactor", "Adafactor"}};

/// Patterns of the recipe's groups: * matches any text, ? one character.
bool fits_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, behind_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {  // let the last star match one more character
      p = star + 1;
      n = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

const std::pair<std::string_view, std::string_view>* torch_class_row(std::string_view optimizer) {
  return std::ranges::find(kTorchClasses, optimizer, [](const auto& row) { return row.first; });
}

}  // namespace

TorchGroups::TorchGroups(const Json& manifest)
    : recipe_(make<Recipe>(st_recipe_create, manifest["recipe"].dump().c_str())), optimizer_(recipe_text(recipe_, "optimizer")) {
  lr_ = manifest["training"].value("lr", real("lr"));
  if (torch_class_row(optimizer_) == std::end(kTorchClasses))
    refuse("--format torch: ", optimizer_,
           optimizer_ == "muon" ? " needs two optimizers in PyTorch, whose Muon accepts only matrices"
                                : " is an optimizer that torch.optim does not have",
           "; export as safetensors, with --everything or without");
  for (const Json& row : Json::parse(text(st_recipe_get, recipe_.get(), "groups"))) {
    if (const auto other = row.value("optimizer", optimizer_); !other.empty() && other != optimizer_)
      refuse("--format torch: the recipe has two optimizers, ", optimizer_, " and ", other, ", but a PyTorch state_dict holds one");
    groups_.push_back(
        {row["pattern"].get<std::string>(), row.value("lr_scale", 1.0), row.value("weight_decay_scale", 1.0), row.value("frozen", false)});
  }
  groups_.push_back({"*"});
}

std::string TorchGroups::torch_class() const { return "torch.optim." + std::string(torch_class_row(optimizer_)->second); }

std::vector<std::string> TorchGroups::order(const std::vector<std::string>& weights) {
  std::vector<std::string> order;
  for (Group& group : groups_) {
    for (const std::string& weight : weights) {
      const auto first = std::ranges::find_if(groups_, [&](const Group& g) { return fits_pattern(g.pattern, weight); });
      if (&*first != &group || group.is_frozen) continue;
      order.push_back(weight);
      ++group.weights;
    }
  }
  return order;
}

const TorchValue* TorchGroups::write(TorchValues& values) const {
  TorchList all;
  int64_t next = 0;
  for (const Group& group : groups_) {
    if (group.weights == 0) continue;
    TorchValue* row = values.dict();
    write_keys(values, row, group);
    TorchList numbers;
    for (int64_t i = 0; i < group.weights; ++i) numbers.items.push_back(values.add({next++}));
    values.set(row, "params", values.list(std::move(numbers)));
    all.items.push_back(row);
  }
  return values.list(std::move(all));
}

double TorchGroups::real(const char* key) const { return Json::parse(text(st_recipe_get, recipe_.get(), key)).get<double>(); }
bool TorchGroups::flag(const char* key) const { return Json::parse(text(st_recipe_get, recipe_.get(), key)).get<bool>(); }

/// The keys of torch.optim's groups, in their order. Keys that only choose an implementation get PyTorch's defaults.
void TorchGroups::write_keys(TorchValues& values, TorchValue* to, const Group& group) const {
  const auto number = [&](const char* key, double value) { values.set(to, key, values.add({value})); };
  const auto boolean = [&](const char* key, bool value) { values.set(to, key, values.add({value})); };
  const auto nothing = [&](const char* key) { values.set(to, key, values.add({})); };
  const auto pair = [&](const char* key, const TorchValue* first, const TorchValue* second) {
    values.set(to, key, values.list({{first, second}, true}));
  };
  number("lr", lr_ * group.lr_scale);
  number("weight_decay", real("weight_decay") * group.decay_scale);
  boolean("maximize", false);
  nothing("foreach");
  if (optimizer_ != "adafactor") boolean("differentiable", false);
  if (optimizer_ == "adamw" || optimizer_ == "adam") {
    pair("betas", values.add({real("beta1")}), values.add({real("beta2")}));
    number("eps", real("epsilon"));
    boolean("amsgrad", false);
    boolean("capturable", false);
    nothing("fused");
    boolean("decoupled_weight_decay", optimizer_ == "adamw");
  } else if (optimizer_ == "sgd") {
    number("momentum", real("momentum"));
    number("dampening", real("dampening"));
    boolean("nesterov", flag("nesterov"));
    nothing("fused");
  } else if (optimizer_ == "rmsprop") {
    number("momentum", real("momentum"));
    number("alpha", real("beta2"));
    number("eps", real("epsilon"));
    boolean("centered", flag("centered"));
    boolean("capturable", false);
  } else if (optimizer_ == "adagrad") {
    number("lr_decay", real("rate_decay"));
    number("eps", real("epsilon"));
    number("initial_accumulator_value", real("initial_accumulator_value"));
    nothing("fused");
  } else {
    const double epsilon = real("epsilon");
    number("beta2_decay", real("beta2_decay"));
    pair("eps", epsilon == 0 ? values.add({}) : values.add({epsilon}), values.add({real("epsilon2")}));
    number("d", real("clip_threshold"));
  }
}

}  // namespace cli
