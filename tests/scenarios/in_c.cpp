// The scenarios over the C ABI: what runners in other languages must print too. in_c SCENARIOS.txt
#include <scaletrain/scaletrain.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(st_status status) {
  if (status != ST_OK) throw std::runtime_error(st_last_error());
}

/// An array of a batch, filled anew for each step.
struct Array {
  explicit Array(const std::string& line) {
    std::istringstream words(line);
    words >> name >> dtype;
    size_t count = 1;
    for (int64_t dim = 0; words >> dim; count *= static_cast<size_t>(dim)) dims.push_back(dim);
    floats.resize(dtype == "f32" ? count : 0);
    integers.resize(dtype == "f32" ? 0 : count);
  }
  void fill(uint32_t& state) {
    const auto next = [&] { return (state = state * 1664525U + 1013904223U) >> 8; };
    for (float& x : floats) x = static_cast<float>(next()) / (1 << 23) - 1;
    for (int32_t& i : integers) i = static_cast<int32_t>(next() % 50);
  }
  st_named_view view() {
    const auto rank = static_cast<int32_t>(dims.size());
    if (dtype == "f32") return {name.c_str(), {ST_F32, rank, dims.data(), nullptr, floats.data(), static_cast<int64_t>(floats.size() * 4)}};
    return {name.c_str(), {ST_I32, rank, dims.data(), nullptr, integers.data(), static_cast<int64_t>(integers.size() * 4)}};
  }

  std::string name, dtype;
  std::vector<int64_t> dims;
  std::vector<float> floats;
  std::vector<int32_t> integers;
};

std::string bits(double number) {
  uint64_t raw = 0;
  std::memcpy(&raw, &number, sizeof raw);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(raw));
  return text;
}

/// Runs the scenario that begins with this name; its other lines come from the file.
void run(st_context* context, const std::string& name, std::ifstream& file) {
  std::string line, model_name, options, recipe_text;
  int64_t seed = 0, steps = 0;
  std::getline(file, line);
  std::istringstream(line) >> model_name >> seed >> steps;
  std::getline(file, options);
  std::getline(file, recipe_text);
  std::vector<Array> arrays;
  while (std::getline(file, line) && !line.empty()) arrays.emplace_back(line);

  st_model* model = nullptr;
  st_recipe* recipe = nullptr;
  st_trainer* trainer = nullptr;
  check(st_model_builtin(context, model_name.c_str(), options.c_str(), seed, &model));
  check(st_recipe_create(recipe_text.c_str(), &recipe));
  check(st_trainer_create(model, recipe, nullptr, &trainer));
  uint32_t state = 1;
  st_step_report report;
  check(st_step_report_init(&report, sizeof report));
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<st_named_view> batch;
    for (Array& array : arrays) {
      array.fill(state);
      batch.push_back(array.view());
    }
    check(st_trainer_step(trainer, static_cast<int64_t>(batch.size()), batch.data(), &report));
    std::printf("%s %d %d %s %s %s\n", name.c_str(), static_cast<int>(report.step), report.skipped, bits(report.loss).c_str(),
                bits(report.lr).c_str(), bits(report.grad_norm).c_str());
  }
  const char* digest = nullptr;
  check(st_trainer_digest(trainer, &digest));
  std::printf("%s %s\n", name.c_str(), digest);
  check(st_trainer_destroy(trainer));
  check(st_recipe_destroy(recipe));
  check(st_model_destroy(model));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: in_c SCENARIOS.txt\n"), 2;
  st_context* context = nullptr;
  check(st_context_create(nullptr, &context));
  std::ifstream file(argv[1]);
  for (std::string name; std::getline(file, name);) run(context, name, file);
  check(st_context_destroy(context));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
