// Maps an optimizer's name and key values to the update op of each parameter, by the rows of ir/optimizers.def.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/optimizer_choice.h"
#include "optim/parameter_groups.h"

namespace st {

/// Throws invalid_argument for an unknown name and suggests the nearest one.
void check_optimizer_name(std::string_view name);

/// Keys whose default for this optimizer differs from recipe.def, with that default as JSON. kAnyOptimizer: the keys of all optimizers.
constexpr std::string_view kAnyOptimizer;
std::vector<std::pair<std::string, std::string>> optimizer_defaults(std::string_view name);

/// A key's value as JSON; empty: there is no such key.
using OptimizerKeys = std::function<std::optional<std::string>(std::string_view key)>;

struct NamedOptimizer {
  std::string name;
  OptimizerKeys keys;
  ParameterGroups groups;
  std::map<std::string_view, Attrs> attributes = {};  // by the optimizers chosen so far, for all parameters: keys do not change

  /// muon updates matrices that are weights of products; adamw-8bit updates parameters of 4096 elements or more. adamw updates the rest.
  /// Throws invalid_argument for keys that contradict each other.
  OptimizerChoice choose(std::string_view parameter, const Type& type, bool is_weight);
};

}  // namespace st
