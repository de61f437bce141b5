// The recipe's keys that one part by itself has.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/recipe.h"

namespace st {

struct PartKeys {
  std::string_view part;  // what messages begin with: "schedule"
  std::span<const std::string> keys;
  std::string_view short_name = {}, stands_for = {};  // of a key: "schedule" for "lr_schedule"
};

/// Throws invalid_argument for a key that is not the part's; the nearest is named.
void require_key(const PartKeys& keys, std::string_view key);

/// Takes every key of a JSON object; "": none. Throws invalid_argument: as require_key(), wrong type, out of range; the recipe is to be
/// thrown away then.
void merge_part(Recipe& recipe, const PartKeys& keys, std::string_view json);
/// One key, as Recipe::set. Throws likewise.
void set_part(Recipe& recipe, const PartKeys& keys, const std::string& key, std::string_view value);

}  // namespace st
