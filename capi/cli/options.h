// Options are kept as text until a command parses them. Every mistake in them is a one-line refusal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "handle.h"

namespace cli {

using Json = nlohmann::ordered_json;

/// A command: its options, and what to run after parsing. `run` returns the exit status.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command info_command(CLI::App& app);
Command train_command(CLI::App& app);
Command plan_command(CLI::App& app);
Command bench_command(CLI::App& app);
Command checkpoint_command(CLI::App& app);

/// Adds an option with one value; if it is given twice, the last wins.
CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value, const std::string& help);
/// The same, of an option that an empty value would leave out in silence: it is refused.
CLI::Option* add_filled(CLI::App& app, const std::string& name, std::string& value, const std::string& help);

int64_t whole_number(const std::string& option, const std::string& value);
double real_number(const std::string& option, const std::string& value);

/// The known word nearest to `word`; "" if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// Refuses unknown arguments: names the nearest option, or says that the option does not exist yet.
void refuse_extras(const CLI::App& command);

/// The RECIPE options of a command, from st_recipe_keys(): --lr-schedule is the key lr_schedule.
class RecipeOptions {
 public:
  void add(CLI::App& app);
  /// Defaults, then the file of --recipe, then the given options. A schedule without a length gets the run's.
  Recipe recipe(int64_t steps) const;
  /// Whether the key was given, as an option or with another value than its default in the file.
  bool is_given(const std::string& key, const Recipe& recipe) const;

 private:
  struct Key {
    std::string name, type, value;
    CLI::Option* option = nullptr;
  };
  std::string with_length(std::string file, int64_t steps) const;

  std::string file_;
  std::map<std::string, Key> keys_;  // a map: its nodes do not move, and CLI11 keeps pointers to the values
};

/// The option of a recipe key: "--lr-schedule".
std::string hyphens(std::string key);
/// A recipe key's value. Texts are returned without quotes.
std::string recipe_text(const Recipe& recipe, const char* key);
int64_t recipe_whole(const Recipe& recipe, const char* key);

}  // namespace cli
