// Plans before anything runs: a GPT of 10 B parameters on 8 ranks of a machine that is not here. The first recipe does not fit; the plan
// lists changes of the recipe with their prices. The first one that fits is applied and planned. Then the library searches by itself.
// Prints the lines of 15_plan.c. Build: c++ -std=c++17 15_plan.cpp -lscaletrain
#include <cstdio>
#include <regex>
#include <scaletrain.hpp>
#include <string>

namespace {

constexpr const char* kMachine = R"({"machine": "a100-80g"})";

/// The number of a key; the plan's own keys come before those of its fixes.
double number(const std::string& json, const std::string& key) {
  std::smatch found;
  return std::regex_search(json, found, std::regex("\"" + key + "\":([^,}]*)")) ? std::stod(found[1]) : 0;
}

bool fits(const std::string& json) { return json.find("\"fits\":true,\"wire_bytes\"") != std::string::npos; }

std::string print_plan(const char* name, const scaletrain::Plan& plan) {
  const std::string json = plan.json();
  const double total = number(json, "device_total") / 1e9, room = number(json, "device_memory") / 1e9;
  std::printf("%-14s %6.1f GB of %.1f, %.2f s a step: ", name, total, room, number(json, "step_seconds"));
  if (fits(json))
    std::printf("fits\n");
  else
    std::printf("does not fit, %.1f GB too much\n", total - room);
  return json;
}

void set_keys(const scaletrain::Recipe& recipe, const std::string& changes) {
  const std::regex pair("\"([^\"]*)\":([^,]*)");
  for (std::sregex_iterator one(changes.begin(), changes.end(), pair), end; one != end; ++one) recipe.set((*one)[1], (*one)[2]);
}

}  // namespace

int main(int argc, char** argv) try {
  scaletrain::ContextOptions options;
  options.late_parameters = true;  // a plan does not read the parameters, so they are never made
  if (argc > 1 && std::string(argv[argc - 1]) == "--device") return std::fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") options.device = argv[argc - 1];  // --device NAME at the end
  const scaletrain::Context context(options);
  const scaletrain::Model model(context, "gpt", R"({"layers": 12, "width": 8192, "heads": 64, "context": 1024, "vocabulary": 50304})", 1);
  const scaletrain::Recipe recipe(R"({"ranks": 8, "batch": 16, "precision": "fp16", "optimizer": "adam"})");

  const scaletrain::Plan first(model, recipe, kMachine);
  const std::string json = first.json(), book = json.substr(json.find("\"textbook\":"));
  std::printf("%.1f B parameters; textbook: %.0f bytes each, %.1f GB a rank, %.1f GB with ZeRO-3\n", number(book, "parameters") / 1e9,
              number(book, "bytes_per_parameter"), number(book, "data_parallel") / 1e9, number(book, "zero_3") / 1e9);
  print_plan("first recipe", first);

  std::smatch fix;
  if (!std::regex_search(json, fix, std::regex(R"re(\{"text":"([^"]*)","recipe":\{([^}]*)\},"fits":true)re"))) return 1;
  std::printf("%s\n", fix.str(1).c_str());
  const scaletrain::Recipe fixed(first.recipe());
  set_keys(fixed, fix[2]);
  const std::string planned = print_plan("with the fix", scaletrain::Plan(model, fixed, kMachine));

  const std::string found = print_plan("searched", scaletrain::Plan(model, recipe, R"({"machine": "a100-80g", "auto": true})"));
  std::smatch changes;
  if (std::regex_search(found, changes, std::regex(R"re("found":\[\{"recipe":(\{[^}]*\}))re"))) std::printf("%s\n", changes.str(1).c_str());
  return !fits(json) && fits(planned) && fits(found) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
