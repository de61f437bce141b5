// Changes of a recipe that may save memory or time, and how they are written: for the planner, and for the error of a step that does not
// fit.
#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace st {

struct KeyChange {
  std::string key, value;  // of the recipe; value: JSON
  std::string before;      // JSON
};
using KeyChanges = std::vector<KeyChange>;

/// Changes that are worth a plan, each on its own. Some the recipe refuses for a model, and some save nothing.
std::vector<KeyChanges> changes_to_try(const Recipe& recipe);
/// Whether they change what a step computes, beyond rounding of the same sums.
bool changes_numbers(const KeyChanges& changes);
/// Adds changes to earlier ones: a key that is changed twice has its last value.
void add_changes(KeyChanges& to, const KeyChanges& changes);
/// "zero 1 -> 2, recompute attention".
std::string text_of(const KeyChanges& changes);

}  // namespace st
