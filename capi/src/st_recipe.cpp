#include "base/json_line.h"
#include "guard.h"
#include "recipe_object.h"

using namespace st;
using namespace st::capi;

st_status st_recipe_create(const char* json, st_recipe** recipe) {
  return guard([&] {
    given(recipe, "st_recipe_create: recipe");
    auto object = std::make_shared<RecipeObject>();
    object->recipe.merge(json == nullptr ? "" : json);
    hand_out(recipe, std::move(object));
  });
}

st_status st_recipe_destroy(st_recipe* recipe) { return drop(recipe); }

st_status st_recipe_set(st_recipe* recipe, const char* key, const char* json_value) {
  return guard(
      [&] { find(recipe)->recipe.set(text_given(key, "st_recipe_set: key"), text_given(json_value, "st_recipe_set: json_value")); });
}

st_status st_recipe_get(st_recipe* recipe, const char* key, const char** json_value) {
  return guard([&] {
    const auto object = find(recipe);
    object->answer = object->recipe.get(text_given(key, "st_recipe_get: key"));
    given(json_value, "st_recipe_get: json_value") = object->answer.c_str();
  });
}

st_status st_recipe_json(st_recipe* recipe, const char** json) {
  return guard([&] {
    const auto object = find(recipe);
    object->answer = object->recipe.json();
    given(json, "st_recipe_json: json") = object->answer.c_str();
  });
}

st_status st_recipe_keys(const char** json) {
  return guard([&] {
    static const std::string answer = once_for_the_process([] {
      std::vector<std::string> list;
      for (const RecipeKey& key : recipe_keys()) {
        JsonLine row;
        row.add("name", key.name).add("type", key.type).add_json("default", key.standard);
        std::vector<std::string> others;
        for (const std::string& name : other_names_of(key.name)) append_json_string(others.emplace_back(), name);
        list.push_back(row.add("allowed", key.allowed).add("help", key.help).add_json("other_names", json_list(others)).text());
      }
      return json_list(list);
    });
    given(json, "st_recipe_keys: json") = answer.c_str();
  });
}
