// The recipe keys of a stand-alone part, such as a schedule or an optimizer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "recipe/recipe.h"

namespace st {

struct PartKeys {
  std::string_view part;  // messages begin with it: "schedule"
  std::span<const std::string> keys;
  std::string_view short_name = {}, stands_for = {};  // an alias and its key: "schedule" for "lr_schedule"
};

/// Throws invalid_argument for a key that the part does not have; suggests the nearest.
void require_key(const PartKeys& keys, std::string_view key);

/// Takes every key of a JSON object; "": none. Throws invalid_argument: like require_key(), wrong type, out of range; discard the recipe
/// then.
void merge_part(Recipe& recipe, const PartKeys& keys, std::string_view json);
/// Sets one key, like Recipe::set. Throws the same; the message has the alias if that was given.
void set_part(Recipe& recipe, const PartKeys& keys, const std::string& name, std::string_view value);

}  // namespace st
