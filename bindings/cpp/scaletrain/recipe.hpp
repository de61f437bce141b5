// A recipe: how to train.
#pragma once

#include <scaletrain/recipe.h>

#include <scaletrain/handle.hpp>
#include <string>

namespace scaletrain {

class Recipe : public detail::Handle<st_recipe, st_recipe_destroy> {
 public:
  Recipe() { done(st_recipe_create(nullptr, out())); }
  /// json: an object of keys. An unknown key is refused; the error names the nearest.
  explicit Recipe(const std::string& json) { done(st_recipe_create(json.c_str(), out())); }

  /// json_value: "12", "\"adamw\"".
  void set(const std::string& key, const std::string& json_value) const { done(st_recipe_set(get(), key.c_str(), json_value.c_str())); }
  /// The value as JSON.
  std::string value(const std::string& key) const {
    return text([&](st_recipe* recipe, const char** json) { return st_recipe_get(recipe, key.c_str(), json); });
  }
  std::string json() const { return text(st_recipe_json); }
  /// [{"name":"lr","type":"real","default":0.001,"allowed":"[0,inf)","help":"..."}]
  static std::string keys() {
    const char* json = "";
    check(st_recipe_keys(&json));
    return json;
  }
};

}  // namespace scaletrain
