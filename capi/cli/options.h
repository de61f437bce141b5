// Options: what the person wrote, as text, until a command says what it must be. Everything wrong about them is a refusal of one line.
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

/// A command: its options, and what to do once they are read. Returns the exit status.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command info_command(CLI::App& app);
Command train_command(CLI::App& app);
Command bench_command(CLI::App& app);
Command checkpoint_command(CLI::App& app);

/// Of an option that takes one value; given twice, the last wins.
CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value, const std::string& help);

int64_t whole_number(const std::string& option, const std::string& value);
double real_number(const std::string& option, const std::string& value);

/// The word that was probably meant; "" when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// Refuses what the command does not know: names the nearest option, or says that it is not there yet.
void refuse_extras(const CLI::App& command);

/// The RECIPE options of a command, from st_recipe_keys(): --lr-schedule is the key lr_schedule.
class RecipeOptions {
 public:
  void add(CLI::App& app);
  /// Defaults, then the file of --recipe, then the options given. A schedule that has no length has that of the run.
  Recipe recipe(int64_t steps) const;

 private:
  struct Key {
    std::string name, type, value;
    CLI::Option* option = nullptr;
  };
  std::string with_length(std::string file, int64_t steps) const;

  std::string file_;
  std::map<std::string, Key> keys_;  // nodes do not move: CLI11 keeps pointers to the values
};

/// A key's value. Texts come without quotes.
std::string recipe_text(const Recipe& recipe, const char* key);
int64_t recipe_whole(const Recipe& recipe, const char* key);

}  // namespace cli
