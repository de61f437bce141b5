#include "recipe/part_recipe.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace st {
namespace {

constexpr std::string_view kRecipe = "recipe: ";

}  // namespace

void require_key(const PartKeys& keys, std::string_view key) {
  if (std::ranges::find(keys.keys, key) != keys.keys.end()) return;
  std::vector<std::string> names(keys.keys.begin(), keys.keys.end());
  if (!keys.short_name.empty()) names.emplace_back(keys.short_name);
  fail(Code::invalid_argument, text(keys.part, ": unknown key \"", key, "\"", way_out(key, names, text("there are ", listed(names)))));
}

void set_part(Recipe& recipe, const PartKeys& keys, const std::string& name, std::string_view value) {
  const std::string key = !keys.short_name.empty() && name == keys.short_name ? std::string(keys.stands_for) : name;
  require_key(keys, key);
  try {
    recipe.set(key, value);
  } catch (const Error& error) {  // Recipe::set says whose key was wrong: here there is no recipe
    const std::string& message = error.message();
    if (!message.starts_with(kRecipe)) throw;
    std::string why = message.substr(kRecipe.size());
    if (why.starts_with(key)) why.replace(0, key.size(), name);  // as the caller wrote it
    fail(error.code(), text(keys.part, ": ", why));
  }
}

void merge_part(Recipe& recipe, const PartKeys& keys, std::string_view json) {
  if (json.empty()) return;
  const Json object = parse_settings(json, keys.part);
  check(object.is(Json::Kind::object), keys.part, ": must be a JSON object, got ", object.dump());
  check(keys.short_name.empty() || object.find(keys.short_name) == nullptr || object.find(keys.stands_for) == nullptr, keys.part, ": ",
        keys.short_name, " and ", keys.stands_for, " are the same key; give one of them");
  for (const auto& [name, value] : object.members()) set_part(recipe, keys, name, value.dump());
}

}  // namespace st
