#include "optim/choose_optimizer.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

constexpr int64_t kLeastCodedElements = 4096;  // as in bitsandbytes: small parameters gain nothing from 8 bits

struct Row {
  std::string_view name;
  Op op;
  std::string_view attributes, defaults;
};

constexpr Row kRows[] = {
#define ST_OPTIMIZER(name, op, attributes, defaults, grain, help) {#name, Op::op, attributes, defaults},
#include "ir/optimizers.def"
#undef ST_OPTIMIZER
};

const Row& row_of(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &Row::name);
  if (row != std::end(kRows)) return *row;
  std::vector<std::string> names;
  for (const Row& known : kRows) names.emplace_back(known.name);
  fail(Code::invalid_argument, text("optimizer: \"", name, "\" is unknown", way_out(name, names, text("there are ", listed(names)))));
}

/// "a=1 b=false" as pairs.
std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view assignments) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& word : words_of(assignments)) {
    const size_t equals = word.find('=');
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

/// Converts JSON to an attribute's type, independently of the host's locale.
AttrValue value_of(const AttrValue& standard, const std::string& json) {
  if (std::holds_alternative<bool>(standard)) return json == "true";
  if (std::holds_alternative<std::string>(standard)) return json.substr(1, json.size() - 2);
  double number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  if (std::holds_alternative<int64_t>(standard)) return static_cast<int64_t>(number);
  return number;
}

Attrs attributes_of(const Row& row, const OptimizerKeys& keys) {
  Attrs attrs;
  for (const OpAttr& attr : info_of(row.op).attrs)
    if (const auto json = keys(attr.name)) attrs.set(attr.name, value_of(attr.standard, *json));
  for (const auto& [name, json] : pairs_of(row.attributes))
    for (const OpAttr& attr : info_of(row.op).attrs)
      if (attr.name == name) attrs.set(name, value_of(attr.standard, json));
  return attrs;
}

/// The row that updates a parameter of this type under the optimizer `row`: itself or adamw.
const Row& row_for(const Row& row, const Type& type, bool is_weight) {
  const bool is_left = (row.op == Op::muon && (type.shape.rank() != 2 || !is_weight)) ||
                       (row.op == Op::adamw_8bit && type.shape.elements() < kLeastCodedElements);
  return is_left ? row_of("adamw") : row;
}

}  // namespace

void check_optimizer_name(std::string_view name) { row_of(name); }

std::vector<std::pair<std::string, std::string>> optimizer_defaults(std::string_view name) {
  if (name != kAnyOptimizer) return pairs_of(row_of(name).defaults);
  std::vector<std::pair<std::string, std::string>> all;
  for (const Row& row : kRows) std::ranges::move(pairs_of(row.defaults), std::back_inserter(all));
  return all;
}

OptimizerChoice NamedOptimizer::choose(std::string_view parameter, const Type& type, bool is_weight) {
  const ParameterGroup group = groups.of(parameter);
  const Row& row = row_for(row_of(group.optimizer.empty() ? name : group.optimizer), type, is_weight);
  const auto known = attributes.find(row.name);
  OptimizerChoice choice{.op = row.op, .attrs = known != attributes.end() ? known->second : make_attrs(row.op, attributes_of(row, keys))};
  if (known == attributes.end()) attributes.emplace(row.name, choice.attrs);
  if (row.op == Op::sgd && choice.attrs.flag("nesterov")) {
    const double momentum = choice.attrs.real("momentum"), dampening = choice.attrs.real("dampening");
    check(momentum > 0 && dampening == 0, "optimizer: sgd with nesterov needs a momentum above 0 and no dampening, got momentum ", momentum,
          " and dampening ", dampening);
  }
  if (group.lr_scale != choice.attrs.real("lr_scale")) choice.attrs.set("lr_scale", group.lr_scale);
  if (group.weight_decay_scale != 1) choice.attrs.set("weight_decay", choice.attrs.real("weight_decay") * group.weight_decay_scale);
  if (group.clip) choice.clip_group = groups.index_of(parameter);
  return choice;
}

}  // namespace st
