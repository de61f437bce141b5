#include "options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace cli {
namespace {

// Other systems' names for options that are not recipe keys; st_recipe_keys has those of keys.
const std::map<std::string, std::string> kOtherNames = {
    {"--epochs", "--steps"},      {"--num-train-epochs", "--steps"}, {"--max-steps", "--steps"},   {"--n-layer", "--layers"},
    {"--num-layers", "--layers"}, {"--n-embd", "--width"},           {"--hidden-size", "--width"}, {"--n-head", "--heads"},
    {"--num-heads", "--heads"},   {"--block-size", "--context"},     {"--seq-len", "--context"},   {"--vocab-size", "--vocabulary"},
    {"--dataset", "--data"},      {"--output-dir", "--checkpoint"},  {"--save-steps", "--every"},  {"--save-total-limit", "--keep"}};

size_t distance(const std::string& a, const std::string& b) {  // Levenshtein distance
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string help_of(const Json& key) {
  const auto allowed = key["allowed"].get<std::string>();
  const Json& standard = key["default"];
  std::string help = key["help"].get<std::string>() + " [" + (standard.is_string() ? standard.get<std::string>() : standard.dump()) + "]";
  if (key["type"] == "text" && !allowed.empty()) help += " (" + allowed + ")";
  return help;
}

std::string contents(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) == 0)
    refuse("--recipe: ", path, " is empty; give a JSON object, {} for the defaults");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) refuse("--recipe: cannot read ", path);
  return text.str();
}

/// In the form that st_recipe_set takes. The recipe validates keys and values and reports the errors.
std::string json_of(const std::string& type, const std::string& value) {
  if (type == "list" || (type != "text" && Json::accept(value))) return value;
  double number = 0;  // ".5" is not JSON
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (type == "real" && error == std::errc() && end == value.data() + value.size() && std::isfinite(number)) return Json(number).dump();
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Other systems' names for our options, for both options and keys.
std::map<std::string, std::string> other_names() {
  std::map<std::string, std::string> names = kOtherNames;
  for (const Json& row : Json::parse(text(st_recipe_keys)))
    for (const Json& other : row["other_names"]) names.emplace(hyphens(other.get<std::string>()), hyphens(row["name"].get<std::string>()));
  return names;
}

}  // namespace

std::string hyphens(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value, const std::string& help) {
  return app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_filled(CLI::App& app, const std::string& name, std::string& value, const std::string& help) {
  const auto why = [](const std::string& given) {
    return std::string(given.empty() ? "the value is empty; give one, or leave it out" : "");
  };
  return add_text(app, name, value, help)->check(why, "");
}

int64_t whole_number(const std::string& option, const std::string& value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) refuse(option, " is \"", value, "\"; give a whole number");
  return number;
}

double real_number(const std::string& option, const std::string& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number))
    refuse(option, " is \"", value, "\"; give a number");
  return number;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(3, word.size() / 2);  // beyond this distance it is another word
  for (const std::string& k : known) {
    const size_t d = distance(word, k);
    if (d < least) least = d, best = k;
  }
  return best;
}

void refuse_extras(const CLI::App& command) {
  const auto extras = command.remaining();
  if (extras.empty()) return;
  const auto dashed = std::ranges::find_if(extras, [](const std::string& extra) { return extra.starts_with("-"); });
  if (dashed == extras.end()) refuse(command.get_name(), ": unexpected argument \"", extras.front(), "\"");
  const std::string option = dashed->substr(0, dashed->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* known_option : command.get_options())
    for (const std::string& name : known_option->get_lnames()) known.push_back("--" + name);
  const auto others = other_names();
  const auto other = others.find(option);
  const bool is_here = other != others.end() && std::ranges::find(known, other->second) != known.end();
  const std::string near = is_here ? other->second : nearest(option, known);
  refuse(command.get_name(), ": unknown option ", option,
         near.empty() ? "; scaletrain " + command.get_name() + " --help lists them" : "; did you mean " + near + "?");
}

void RecipeOptions::add(CLI::App& app) {
  for (const Json& row : Json::parse(text(st_recipe_keys))) {
    const auto name = row["name"].get<std::string>();
    Key& key = keys_[name];
    key.name = name;
    key.type = row["type"].get<std::string>();
    const bool is_flag = key.type == "boolean";
    key.option =
        is_flag
            ? app.add_flag(hyphens(name), key.value, row["help"].get<std::string>())->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
            : add_text(app, hyphens(name), key.value, help_of(row));
    key.option->group("Recipe");
  }
  add_text(app, "--recipe", file_, "file of recipe keys, {\"lr\": 0.001, ...}, or a DeepSpeed ds_config.json; options override it")
      ->group("Recipe");
}

/// One of our recipe files may leave out its schedule's length: it becomes the run's.
std::string RecipeOptions::with_length(std::string file, int64_t steps) const {
  const Json object = Json::parse(file, nullptr, false);
  if (!object.is_object() || !object.contains("lr_schedule") || object.contains("lr_steps")) return file;
  const Key& length = keys_.at("lr_steps");
  const std::string value = length.option->count() > 0 ? json_of(length.type, length.value) : std::to_string(steps);
  return file.insert(file.find('{') + 1, "\"lr_steps\":" + value + ",");
}

Recipe RecipeOptions::recipe(int64_t steps) const {
  const std::string base = file_.empty() ? "{}" : with_length(contents(file_), steps);
  st_recipe* made = nullptr;
  if (st_recipe_create(base.c_str(), &made) != ST_OK) refuse(file_.empty() ? "" : "--recipe " + file_ + ": ", st_last_error());
  Recipe recipe(made);
  for (const auto& [name, key] : keys_) {
    if (key.option->count() == 0) continue;
    if (st_recipe_set(made, name.c_str(), json_of(key.type, key.value).c_str()) != ST_OK) refuse(hyphens(name), ": ", st_last_error());
  }
  if (recipe_whole(recipe, "lr_steps") == 0) ask(st_recipe_set(made, "lr_steps", std::to_string(steps).c_str()));
  return recipe;
}

bool RecipeOptions::is_given(const std::string& key, const Recipe& recipe) const {
  const Recipe standard = make<Recipe>(st_recipe_create, "{}");
  return keys_.at(key).option->count() > 0 || recipe_text(recipe, key.c_str()) != recipe_text(standard, key.c_str());
}

std::string recipe_text(const Recipe& recipe, const char* key) {
  const Json value = Json::parse(text(st_recipe_get, recipe.get(), key));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

int64_t recipe_whole(const Recipe& recipe, const char* key) { return Json::parse(text(st_recipe_get, recipe.get(), key)).get<int64_t>(); }

}  // namespace cli
