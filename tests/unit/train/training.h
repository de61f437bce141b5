// A small GPT and its trainer, for tests that compare training runs.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel_side.h"
#include "device/tested_device.h"
#include "models/gpt.h"
#include "sequences.h"
#include "train/trainer.h"

namespace st {

/// Odd sizes: nothing is a multiple of a vector, a tile or a grain.
inline GptOptions odd_gpt() { return {.layers = 2, .width = 12, .heads = 3, .context = 7, .vocabulary = 17}; }

/// On the reference backend, with a memory limit; 0: no limit.
inline std::shared_ptr<Context> context_within(int64_t memory_limit) {
  return std::make_shared<Context>(
      ContextOptions{.device = "reference", .threads = 1, .memory_limit = memory_limit, .log = {}, .parallel = {}, .memory = {}});
}

struct Training {
  std::string device = "reference";
  int threads = 1;
  GptOptions options = odd_gpt();
  Recipe recipe = {};
  bool ignored = false;                          // the loss ignores some targets
  std::vector<std::string>* warnings = nullptr;  // if not null, gets the log's warnings

  std::shared_ptr<Context> context() const {
    Logger log;
    if (warnings != nullptr) log = {.write = hear, .user = warnings, .level = LogLevel::warning};
    return std::make_shared<Context>(ContextOptions{
        .device = device, .threads = threads, .log = log, .parallel = {}, .memory = {}, .make_backend = tested_backend(device)});
  }
  static void hear(void* warnings, int32_t, const char*, const char* message) {
    static_cast<std::vector<std::string>*>(warnings)->emplace_back(message);
  }
  std::shared_ptr<Model> model() const { return std::make_shared<Model>(context(), build_gpt(options), 1); }
  std::shared_ptr<const Dataset> data() const { return std::make_shared<Sequences>(50, options.context, options.vocabulary, ignored); }
  std::unique_ptr<Trainer> trainer(bool with_data = true) const { return trainer_of(model(), with_data ? data() : nullptr); }
  std::unique_ptr<Trainer> trainer_of(std::shared_ptr<Model> trained, std::shared_ptr<const Dataset> rows) const {
    Recipe mine = recipe;
    mine.device = device;
    return std::make_unique<Trainer>(std::move(trained), mine, std::move(rows));
  }
};

/// Makes every gradient infinite, through a parameter, for its lifetime.
class Overflow {
 public:
  explicit Overflow(Model& model) : gamma_(pointer_to<float>(model.data(model.parameter_named("final_norm.gamma")))), kept_(*gamma_) {
    *gamma_ = std::numeric_limits<float>::infinity();
  }
  ~Overflow() { *gamma_ = kept_; }
  Overflow(const Overflow&) = delete;
  Overflow& operator=(const Overflow&) = delete;

 private:
  float* gamma_;
  float kept_;
};

inline StepReport skipped_step(Trainer& trainer) {
  const Overflow overflow(trainer.model());
  return trainer.step();
}

inline std::vector<float> weights_of(const Model& model, std::string_view name) {
  const SlotId id = model.parameter_named(name);
  std::vector<float> values(static_cast<size_t>(model.slot(id).type.shape.elements()));
  model.get(id, plain_view(name, DType::f32, model.slot(id).type.shape, values.data()));
  return values;
}

inline std::vector<double> losses_of(Trainer& trainer, int steps) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

}  // namespace st
