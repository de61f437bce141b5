// A small GPT and its trainer, for tests that compare trainings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/gpt.h"
#include "sequences.h"
#include "train/trainer.h"

namespace st {

/// Odd sizes: nothing is a multiple of a vector, a tile or a grain.
inline GptOptions odd_gpt() { return {.layers = 2, .width = 12, .heads = 3, .context = 7, .vocabulary = 17}; }

struct Training {
  std::string device = "reference";
  int threads = 1;
  GptOptions options = odd_gpt();
  Recipe recipe = {};
  bool ignored = false;  // some targets are left out of the loss

  std::shared_ptr<Context> context() const {
    return std::make_shared<Context>(ContextOptions{.device = device, .threads = threads, .log = {}, .parallel = {}, .memory = {}});
  }
  std::shared_ptr<Model> model() const { return std::make_shared<Model>(context(), build_gpt(options), 1); }
  std::shared_ptr<const Dataset> data() const { return std::make_shared<Sequences>(50, options.context, options.vocabulary, ignored); }
  std::unique_ptr<Trainer> trainer(bool with_data = true) const {
    Recipe mine = recipe;
    mine.device = device;
    return std::make_unique<Trainer>(model(), mine, with_data ? data() : nullptr);
  }
};

inline std::vector<double> losses_of(Trainer& trainer, int steps) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

}  // namespace st
