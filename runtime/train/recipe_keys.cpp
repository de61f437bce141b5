// Keys of the recipe: parsing, ranges, JSON in and out, all from recipe.def.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/heap.h"
#include "base/interval.h"
#include "base/json.h"
#include "base/json_line.h"
#include "train/ds_comments.h"
#include "train/ds_config.h"
#include "train/recipe.h"

namespace st {
namespace {

std::string value_json(const std::string& value) {
  std::string out;
  append_json_string(out, value);
  return out;
}
std::string value_json(bool value) { return value ? "true" : "false"; }
std::string value_json(const ParameterGroups& value) { return value.json(); }
std::string value_json(int64_t value) { return std::to_string(value); }
std::string value_json(double value) { return json_of(value); }

const char* type_name(const std::string&) { return "text"; }
const char* type_name(const ParameterGroups&) { return "list"; }
const char* type_name(bool) { return "boolean"; }
const char* type_name(int64_t) { return "integer"; }
const char* type_name(double) { return "real"; }

/// "block.*.mlp,head": names of scopes, what they match is known when there is a model. An allowed word SCOPES stands for them.
bool is_scope_patterns(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) > ' '; });
}

void take(std::string& to, const Json& value, const std::string& key, const std::string& allowed) {
  check(value.is(Json::Kind::text), "recipe: ", key, " is text, got ", value.dump());
  const std::string& word = value.text();
  const auto words = words_of(allowed);
  const auto is_allowed = [&](const std::string& one) { return one == word || (one == "SCOPES" && is_scope_patterns(word)); };
  check(words.empty() || std::ranges::any_of(words, is_allowed), "recipe: ", key, " cannot be \"", word, "\" here; use ",
        words.size() > 1 ? "one of " : "", allowed);
  to = word;
}

void take(ParameterGroups& to, const Json& value, const std::string&, const std::string&) { to = ParameterGroups(value); }

void take(bool& to, const Json& value, const std::string& key, const std::string&) {
  check(value.is(Json::Kind::boolean), "recipe: ", key, " is true or false, got ", value.dump());
  to = value.boolean();
}

void take(double& to, const Json& value, const std::string& key, const std::string& allowed) {
  check(value.is_number(), "recipe: ", key, " is a number, got ", value.dump());
  const double number = value.number();
  check(is_inside(number, allowed), "recipe: ", key, " is ", number, ", allowed is ", allowed);
  to = number;
}

void take(int64_t& to, const Json& value, const std::string& key, const std::string& allowed) {
  check(value.is(Json::Kind::whole), "recipe: ", key, " is a whole number, got ", value.dump());
  const int64_t number = value.whole();
  check(is_inside(static_cast<double>(number), allowed), "recipe: ", key, " is ", number, ", allowed is ", allowed);
  to = number;
}

[[noreturn]] void refuse_key(std::string_view key) {
  std::vector<std::string> names;
  for (const RecipeKey& row : recipe_keys()) names.push_back(row.name);
  const std::string near = nearest(key, names), theirs = near.empty() ? nearest(key, ds_config_keys()) : "";
  fail(Code::invalid_argument, text("recipe: unknown key \"", key, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?"),
                                    theirs.empty() ? "" : text("; did you mean \"", theirs, "\" of a ds_config?")));
}

void take_value(Recipe& recipe, const std::string& key, const Json& value) {
#define ST_RECIPE(type, name, standard, allowed, help) \
  if (key == #name) return take(recipe.name, value, key, allowed);
#include "train/recipe.def"
#undef ST_RECIPE
  refuse_key(key);
}

/// The optimizer's defaults in all keys that some optimizer has one of its own for, but those that were given.
void take_defaults(Recipe& recipe) {
  const auto take_default = [&](const std::string& key, const std::string& json) {
    if (std::ranges::find(recipe.given, key) == recipe.given.end()) take_value(recipe, key, parse_json(json, text("recipe: ", key)));
  };
  for (const auto& [key, json] : optimizer_defaults(kAnyOptimizer))
    for (const RecipeKey& row : recipe_keys())
      if (row.name == key) take_default(key, row.standard);
  for (const auto& [key, json] : optimizer_defaults(recipe.optimizer)) take_default(key, json);
}

constexpr int64_t kAuto = 0;  // a batch that is left open

std::string or_auto(std::string_view key, const std::string& json) { return key == "batch" && json == "0" ? "\"auto\"" : json; }

void take_key(Recipe& recipe, const std::string& key, const Json& value) {
  if (key == "batch" && value.is(Json::Kind::text) && value.text() == "auto")
    recipe.batch = kAuto;
  else
    take_value(recipe, key, value);
  if (std::ranges::find(recipe.given, key) == recipe.given.end()) recipe.given.push_back(key);
  if (key == "optimizer") take_defaults(recipe);
}

/// A file of DeepSpeed's may have comments. Of any other the error is that of the text as it is.
Json parse_recipe(std::string_view json) {
  try {
    return parse_json(json, "recipe");
  } catch (const Error& error) {
    check(json.find_first_not_of(" \t\r\n") != std::string_view::npos,
          "recipe: the text is empty; give a JSON object, {} for the defaults");
    const std::string plain = without_comments(json);
    if (plain == json) throw;
    Json object = parse_json(plain, "recipe");
    if (!is_ds_config(object))
      fail(error.code(), text(error.message(), "; a recipe is JSON without comments and without a comma after the last entry"));
    return object;
  }
}

}  // namespace

const std::vector<RecipeKey>& recipe_keys() {
  static const auto keys = once_for_the_process([] {
    return std::vector<RecipeKey>{
#define ST_RECIPE(type, name, standard, allowed, help) {#name, type_name(type{}), value_json(type{standard}), allowed, help},
#include "train/recipe.def"
#undef ST_RECIPE
    };
  });
  return keys;
}

void Recipe::merge(std::string_view json) {
  if (json.empty()) return;
  const Json object = parse_recipe(json);
  check(object.is(Json::Kind::object), "recipe: a JSON object is needed, got ", object.dump());
  Recipe merged = *this;  // all keys or none
  if (is_ds_config(object)) {
    const DsRecipe file = read_ds_config(object);
    for (const auto& [key, value] : file.keys) take_key(merged, key, parse_json(value, text("ds_config: ", key)));
    merged.notes = file.notes;
    *this = merged;
    return;
  }
  for (const auto& [key, value] : object.members()) take_key(merged, key, value);
  *this = merged;
}

void Recipe::set(std::string_view key, std::string_view value) {
  take_key(*this, std::string(key), parse_json(value, text("recipe: ", key)));
}

std::string Recipe::get(std::string_view key) const {
#define ST_RECIPE(type, name, standard, allowed, help) \
  if (key == #name) return or_auto(key, value_json(name));
#include "train/recipe.def"
#undef ST_RECIPE
  refuse_key(key);
}

std::string Recipe::json() const {
  JsonLine object;
#define ST_RECIPE(type, name, standard, allowed, help) object.add_json(#name, or_auto(#name, value_json(name)));
#include "train/recipe.def"
#undef ST_RECIPE
  return object.text();
}

NamedOptimizer Recipe::update() const {
  const auto value_of = [recipe = *this](std::string_view key) -> std::optional<std::string> {
    for (const RecipeKey& row : recipe_keys())
      if (row.name == key) return recipe.get(key);
    return std::nullopt;
  };
  return {.name = optimizer, .keys = value_of, .groups = groups};
}

std::optional<LossScaler> Recipe::loss_scaler() const {
  if (precision != "fp16") return std::nullopt;
  const bool dynamic = loss_scale == 0;
  return LossScaler({.dynamic = dynamic,
                     .scale = dynamic ? loss_scale_initial : loss_scale,
                     .growth_factor = loss_scale_growth_factor,
                     .backoff_factor = loss_scale_backoff_factor,
                     .growth_interval = loss_scale_growth_interval,
                     .hysteresis = loss_scale_hysteresis,
                     .consecutive_hysteresis = loss_scale_consecutive_hysteresis,
                     .minimum = loss_scale_minimum});
}

int64_t Recipe::step_micro_batches() const {
  const int64_t accumulated = accumulate * ranks;
  if (micro_batches == 0) return accumulated;
  check(accumulate == 1 || accumulated == micro_batches, "recipe: accumulate ", accumulate, " on ", ranks, ranks == 1 ? " rank" : " ranks",
        " makes ", accumulated, " micro-batches a step, but micro_batches is ", micro_batches, "; give one of the two");
  return micro_batches;
}

std::array<bool, kArenas> Recipe::arenas_in_file() const {
  check(offload != "none" || offload_folder.empty(), "recipe: offload_folder is ", offload_folder,
        ", but offload is none; set offload to optimizer or parameters, or leave the folder out");
  std::array<bool, kArenas> in_file{};
  if (offload_folder.empty()) return in_file;
  in_file[static_cast<size_t>(Arena::optimizer)] = true;
  in_file[static_cast<size_t>(Arena::parameters)] = offload == "parameters";
  return in_file;
}

int64_t Recipe::step_rounds() const { return (step_micro_batches() + ranks - 1) / ranks; }

}  // namespace st
