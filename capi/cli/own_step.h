// Our side of `bench step`: timed training steps of a GPT of a given size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "handle.h"
#include "options.h"
#include "pytorch_peer.h"

namespace cli {

constexpr double kBenchRate = 1e-3;

struct Shape {
  int64_t layers, width, heads, context, batch, vocabulary;
  std::string_view precision = "fp32";  // the recipe's key
};

std::string name_of(const Shape& shape);

/// Arithmetic of the model's matrix products (tied head included) and causal attention: once forward and twice backward.
double flops_a_token(const Shape& shape);

/// New tokens for every step. Low ids are more frequent, so there is something to learn and the first steps' losses differ.
std::vector<int32_t> draw_tokens(const Shape& shape, int64_t steps);

class OwnStep {
 public:
  OwnStep(const Context& context, const Shape& shape, std::vector<int32_t> tokens);

  void write_weights(const std::string& path) const { ask(st_model_write_file(model_.get(), path.c_str(), nullptr)); }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  PytorchPeer::Step step();
  /// Planned bytes by role.
  Json planned_memory() const { return Json::parse(text(st_trainer_plan, trainer_.get()))["ranks"][0]["memory"]; }

 private:
  void split_next();

  Shape shape_;
  std::vector<int32_t> tokens_, inputs_, targets_;
  Model model_;
  Trainer trainer_;
  int64_t steps_ = 0;
};

}  // namespace cli
