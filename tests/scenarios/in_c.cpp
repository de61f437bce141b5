// Runs the scenarios over the C ABI. Runners in other languages must print the same output. Usage: in_c SCENARIOS.txt
#include <scaletrain/scaletrain.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(st_status status) {
  if (status != ST_OK) throw std::runtime_error(st_last_error());
}

/// An array of a batch, refilled for each step.
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
    if (dtype == "f32")
      return {name.c_str(), {ST_F32, rank, dims.data(), nullptr, floats.data(), static_cast<int64_t>(floats.size() * 4), 0, 0}};
    return {name.c_str(), {ST_I32, rank, dims.data(), nullptr, integers.data(), static_cast<int64_t>(integers.size() * 4), 0, 0}};
  }

  std::string name, dtype;
  std::vector<int64_t> dims;
  std::vector<float> floats;
  std::vector<int32_t> integers;
};

/// Fills the arrays with the next numbers and returns views of them.
std::vector<st_named_view> drawn(std::vector<Array>& arrays, uint32_t& state) {
  std::vector<st_named_view> views;
  for (Array& array : arrays) {
    array.fill(state);
    views.push_back(array.view());
  }
  return views;
}

std::string bits(double number) {
  uint64_t raw = 0;
  std::memcpy(&raw, &number, sizeof raw);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(raw));
  return text;
}

void print(const std::string& name, const st_step_report& report) {
  std::printf("%s %d %d %s %s %s\n", name.c_str(), static_cast<int>(report.step), report.skipped, bits(report.loss).c_str(),
              bits(report.lr).c_str(), bits(report.grad_norm).c_str());
}

void step_on(const std::string& name, st_trainer* trainer, std::vector<Array>& arrays, int64_t steps) {
  uint32_t state = 1;
  st_step_report report;
  check(st_step_report_init(&report, sizeof report));
  for (int64_t step = 0; step < steps; ++step) {
    check(st_trainer_step(trainer, static_cast<int64_t>(arrays.size()), drawn(arrays, state).data(), &report));
    print(name, report);
  }
}

/// The actions that on_step performs during the run that calls it; README.md lists them.
struct Steering {
  const std::string& name;
  st_trainer* trainer;
  st_data* data;
  st_checkpoint* checkpoint;
  bool has_resumed = false;

  void after(int64_t step) {
    if (step == 2) {
      st_step_report own;
      check(st_step_report_init(&own, sizeof own));
      check(st_trainer_step(trainer, 0, nullptr, &own));
      print(name, own);
    } else if (step == 4) {
      st_evaluation evaluation;
      check(st_evaluation_init(&evaluation, sizeof evaluation));
      check(st_trainer_evaluate(trainer, data, &evaluation));
      std::printf("%s evaluation %s\n", name.c_str(), bits(evaluation.loss).c_str());
    } else if (step == 5) {
      check(st_trainer_save(trainer, checkpoint, nullptr, nullptr));
    } else if (step == 7 && !has_resumed) {
      check(st_trainer_resume(trainer, checkpoint, nullptr, nullptr, nullptr));
      has_resumed = true;
    } else if (step == 8 && st_trainer_run(trainer, 9, nullptr, nullptr) == ST_BUSY) {
      std::printf("%s busy\n", name.c_str());
    }
  }
};

void run_steered(const std::string& name, st_context* context, st_trainer* trainer, st_data* data, int64_t steps) {
  const std::string folder = std::filesystem::temp_directory_path() / "scaletrain-scenario-XXXXXX";
  std::vector<char> path(folder.c_str(), folder.c_str() + folder.size() + 1);
  if (mkdtemp(path.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
  Steering steering{name, trainer, data, nullptr};
  check(st_checkpoint_create(context, path.data(), nullptr, &steering.checkpoint));
  const auto on_step = [](void* user, const st_step_report* report) -> st_status {
    auto& all = *static_cast<Steering*>(user);
    print(all.name, *report);
    all.after(report->step);
    return ST_OK;
  };
  check(st_trainer_run(trainer, steps, on_step, &steering));
  check(st_checkpoint_destroy(steering.checkpoint));
  std::filesystem::remove_all(path.data());
}

/// Runs the scenario with this name and reads its other lines from the file.
void run(st_context* context, const std::string& name, std::ifstream& file) {
  std::string line, model_name, options, recipe_text, way;
  int64_t seed = 0, steps = 0;
  std::getline(file, line);
  std::istringstream(line) >> model_name >> seed >> steps >> way;
  std::getline(file, options);
  std::getline(file, recipe_text);
  std::vector<Array> arrays;
  while (std::getline(file, line) && !line.empty()) arrays.emplace_back(line);

  st_model* model = nullptr;
  st_recipe* recipe = nullptr;
  st_trainer* trainer = nullptr;
  check(st_model_builtin(context, model_name.c_str(), options.c_str(), seed, &model));
  check(st_recipe_create(recipe_text.c_str(), &recipe));
  st_data* data = nullptr;
  uint32_t state = 1;
  if (way == "run") {
    const std::vector<st_named_view> rows = drawn(arrays, state);
    check(st_data_arrays(context, arrays.front().dims.front(), static_cast<int64_t>(rows.size()), rows.data(), nullptr, nullptr, &data));
  }
  check(st_trainer_create(model, recipe, data, &trainer));
  if (data == nullptr)
    step_on(name, trainer, arrays, steps);
  else
    run_steered(name, context, trainer, data, steps);
  const char* digest = nullptr;
  check(st_trainer_digest(trainer, &digest));
  std::printf("%s %s\n", name.c_str(), digest);
  check(st_trainer_destroy(trainer));
  check(st_recipe_destroy(recipe));
  check(st_model_destroy(model));
  check(st_data_destroy(data));
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
