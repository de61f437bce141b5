// Keys of the recipe: parsing, ranges, JSON in and out, all from recipe.def.
#include <algorithm>
#include <iterator>

#include "backend/device_registry.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/interval.h"
#include "base/json.h"
#include "base/json_line.h"
#include "recipe/ds_comments.h"
#include "recipe/ds_config.h"
#include "recipe/recipe.h"
#include "recipe/schedule_choice.h"

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

/// A pipeline schedule's cells: an allowed word TABLE stands for them. Throws for a table that is wrong.
bool is_schedule(const std::string& text) {
  if (!is_schedule_table(text)) return false;
  static_cast<void>(parse_schedule(text));
  return true;
}

/// "[1,inf) auto": a number's interval, and the words that may stand in its place.
std::string interval_of(const std::string& allowed) { return allowed.substr(0, allowed.find(' ')); }
std::string words_after_interval(const std::string& allowed) { return allowed.substr(std::min(allowed.find(' '), allowed.size())); }

std::string domain_of(const std::string&, const std::string& allowed) {
  const auto words = words_of(allowed);
  if (words.empty()) return "a string";
  return text(words.size() > 1 ? "one of " : "", allowed);
}
std::string domain_of(const ParameterGroups&, const std::string&) { return "a list of objects"; }
std::string domain_of(bool, const std::string&) { return "true or false"; }
std::string domain_of(double, const std::string& allowed) { return "a number in " + interval_text(allowed); }
std::string domain_of(int64_t, const std::string& allowed) {
  const auto words = words_of(words_after_interval(allowed));
  return text("a whole number in ", interval_text(interval_of(allowed), true), words.empty() ? "" : " or ", listed(words));
}

// Each takes a value that is in its domain, and says whether it was.

bool take(std::string& to, const Json& value, const std::string& allowed) {
  if (!value.is(Json::Kind::text)) return false;
  const std::string& word = value.text();
  const auto words = words_of(allowed);
  // A word in capitals stands for what it names: patterns of scopes, a device of a plug-in, which opening it looks for, a table.
  const auto is_allowed = [&](const std::string& one) {
    if (one == "TABLE") return is_schedule(word);
    return one == word || (one == "SCOPES" && is_scope_patterns(word)) || (one == "NAME" && is_device_name(word));
  };
  if (!words.empty() && std::ranges::none_of(words, is_allowed)) return false;
  to = word;
  return true;
}

bool take(ParameterGroups& to, const Json& value, const std::string&) {
  if (!value.is(Json::Kind::list)) return false;
  to = ParameterGroups(value);
  return true;
}

bool take(bool& to, const Json& value, const std::string&) {
  if (!value.is(Json::Kind::boolean)) return false;
  to = value.boolean();
  return true;
}

bool take(double& to, const Json& value, const std::string& allowed) {
  if (!value.is_number() || !is_inside(value.number(), allowed)) return false;
  to = value.number();
  return true;
}

constexpr int64_t kAuto = 0;  // a batch that is left open

bool take(int64_t& to, const Json& value, const std::string& allowed) {
  if (value.is(Json::Kind::text) && std::ranges::count(words_of(words_after_interval(allowed)), value.text()) > 0) {
    to = kAuto;
    return true;
  }
  const auto number = value.as_whole();
  if (!number || !is_inside(static_cast<double>(*number), interval_of(allowed))) return false;
  to = *number;
  return true;
}

/// Other systems' names for the length of a run, which is no key here.
constexpr std::string_view kRunLengths[] = {"epochs", "num_epochs", "num_train_epochs", "max_epochs", "n_epochs",
                                            "steps",  "max_steps",  "num_steps",        "train_steps"};

[[noreturn]] void refuse_key(std::string_view key) {
  std::vector<std::string> names;
  for (const RecipeKey& row : recipe_keys()) names.push_back(row.name);
  check(std::ranges::find(kRunLengths, key) == std::end(kRunLengths), "recipe: unknown key \"", key,
        "\"; the length of a run is not part of a recipe: pass it to run(), or to the command line as --steps");
  const std::string theirs = nearest(key, names).empty() ? nearest(key, ds_config_keys()) : "";
  const std::string all = theirs.empty() ? text("st_recipe_keys, or scaletrain train --help, lists all ", names.size())
                                         : text("did you mean \"", theirs, "\" of a ds_config?");
  fail(Code::invalid_argument, text("recipe: unknown key \"", key, "\"", way_out(key, names, all)));
}

/// For a device with a wrong index, such as "cuda:x".
std::string way_out_of(const std::string& key, const Json& value) {
  if (key != "device" || !value.is(Json::Kind::text)) return "";
  const std::string name = value.text().substr(0, value.text().find(':'));
  const bool has_index = name.size() < value.text().size() && is_device_name(name);
  return has_index ? text("; INDEX is ", kDeviceIndices, ": ", name, ":0, ", name, ":1") : "";
}

void take_value(Recipe& recipe, const std::string& key, const Json& value) {
#define ST_RECIPE(type, name, standard, allowed, help)                                                                                     \
  if (key == #name)                                                                                                                        \
    return check(take(recipe.name, value, allowed), "recipe: ", key, " must be ", domain_of(recipe.name, allowed), ", got ", value.dump(), \
                 way_out_of(key, value));
#include "recipe/recipe.def"
#undef ST_RECIPE
  refuse_key(key);
}

/// A list may be long: its error gives the place of the mistake.
Json parse_value(std::string_view key, std::string_view value) {
  const std::string what = text("recipe: ", key);
  try {
    return parse_settings(value, what);
  } catch (const Error&) {
    if (value.find_first_of("[{") != std::string_view::npos) throw;
  }
  for (const RecipeKey& row : recipe_keys())
    if (row.name == key)
      fail(Code::invalid_argument, text(what, " must be ", row.domain, ", as JSON, got ", value.empty() ? "nothing" : value,
                                        row.type == "text" ? "; a string needs quotes, \"...\"" : ""));
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

std::string or_auto(std::string_view key, const std::string& json) { return key == "batch" && json == "0" ? "\"auto\"" : json; }

void take_key(Recipe& recipe, const std::string& key, const Json& value) {
  take_value(recipe, key, value);
  if (std::ranges::find(recipe.given, key) == recipe.given.end()) recipe.given.push_back(key);
  if (key == "optimizer") take_defaults(recipe);
}

/// A file of DeepSpeed's may have comments. Of any other the error is that of the text as it is.
Json parse_recipe(std::string_view json) {
  try {
    return parse_settings(json, "recipe");
  } catch (const Error& error) {
    check(json.find_first_not_of(" \t\r\n") != std::string_view::npos,
          "recipe: the text is empty; give a JSON object, {} for the defaults");
    const std::string plain = without_comments(json);
    if (plain == json) throw;
    Json object = parse_settings(plain, "recipe");
    if (!is_ds_config(object)) fail(error.code(), text(error.message(), "; a recipe is JSON without comments and without trailing commas"));
    return object;
  }
}

}  // namespace

const std::vector<RecipeKey>& recipe_keys() {
  static const auto keys = once_for_the_process([] {
    return std::vector<RecipeKey>{
#define ST_RECIPE(type, name, standard, allowed, help) \
  {#name, type_name(type{}), value_json(type{standard}), allowed, help, domain_of(type{}, allowed)},
#include "recipe/recipe.def"
#undef ST_RECIPE
    };
  });
  return keys;
}

void Recipe::merge(std::string_view json) {
  if (json.empty()) return;
  const Json object = parse_recipe(json);
  check(object.is(Json::Kind::object), "recipe: must be a JSON object, got ", object.dump());
  Recipe merged = *this;  // all keys or none
  if (is_ds_config(object)) {
    const DsRecipe file = read_ds_config(object);
    for (const auto& [key, value] : file.keys) take_key(merged, key, parse_settings(value, text("ds_config: ", key)));
    merged.notes = file.notes;
    *this = merged;
    return;
  }
  for (const auto& [key, value] : object.members()) take_key(merged, key, value);
  if (object.find("lr_schedule") != nullptr) static_cast<void>(schedule_choice(merged));  // refuses what lacks its length
  *this = merged;
}

void Recipe::set(std::string_view key, std::string_view value) { take_key(*this, std::string(key), parse_value(key, value)); }

std::string Recipe::get(std::string_view key) const {
#define ST_RECIPE(type, name, standard, allowed, help) \
  if (key == #name) return or_auto(key, value_json(name));
#include "recipe/recipe.def"
#undef ST_RECIPE
  refuse_key(key);
}

std::string Recipe::json() const {
  JsonLine object;
#define ST_RECIPE(type, name, standard, allowed, help) object.add_json(#name, or_auto(#name, value_json(name)));
#include "recipe/recipe.def"
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

int64_t Recipe::data_ranks() const {
  if (ranks == 1) return 1;  // as many as stages x tensor
  const int64_t of_each = stages * tensor, data = std::max<int64_t>(1, ranks / of_each);
  const std::string also = tensor == 1 ? "" : text(" x ", tensor);
  check(ranks % of_each == 0, "recipe: ", ranks, " ranks are not a multiple of ", stages, " stages", also,
        tensor == 1 ? "" : " tensor ranks", ": ranks = stages x data ranks", tensor == 1 ? "" : " x tensor", ", such as ", stages, " x ",
        data, also, " = ", data * of_each, "; change one of them");
  return ranks / of_each;
}

int64_t Recipe::step_micro_batches() const {
  const int64_t of_data = data_ranks();
  check(accumulate <= INT64_MAX / of_data, "recipe: accumulate ", accumulate, " on ", of_data,
        " ranks makes more than 2^63 micro-batches per step; use a smaller accumulate");
  const int64_t accumulated = accumulate * of_data;
  if (micro_batches == 0) return accumulated;
  check(accumulate == 1 || accumulated == micro_batches, "recipe: accumulate ", accumulate, " on ", of_data,
        of_data == 1 ? " rank" : " ranks", " makes ", accumulated, " micro-batches per step, but micro_batches is ", micro_batches,
        "; give one of the two");
  return micro_batches;
}

std::array<bool, kArenas> Recipe::arenas_offloaded() const {
  std::array<bool, kArenas> away{};
  away[static_cast<size_t>(Arena::optimizer)] = offload != "none";
  away[static_cast<size_t>(Arena::parameters)] = offload == "parameters" || offload == "gradients";
  away[static_cast<size_t>(Arena::gradients)] = offload == "gradients";
  return away;
}

std::array<bool, kArenas> Recipe::arenas_in_file() const {
  check(offload != "none" || offload_folder.empty(), "recipe: offload_folder is ", offload_folder,
        ", but offload is none; set offload to optimizer, parameters or gradients, or leave the folder out");
  return offload_folder.empty() ? std::array<bool, kArenas>{} : arenas_offloaded();
}

int64_t Recipe::step_rounds() const { return (step_micro_batches() + data_ranks() - 1) / data_ranks(); }

}  // namespace st
