// A small GPT on some ranks, and what its first steps leave, for tests that compare numbers of ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "training.h"

namespace st {

constexpr int kSteps = 4;

struct Outcome {
  std::vector<uint64_t> told;  // losses and norms, as bits
  std::string state;
  bool operator==(const Outcome&) const = default;
};

inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.state;
  for (const uint64_t bits : outcome.told) *out << " " << std::bit_cast<double>(bits);
}

inline void add(Outcome& outcome, const StepReport& report) {
  for (const double value : {report.loss, report.grad_norm, report.loss_scale}) outcome.told.push_back(std::bit_cast<uint64_t>(value));
  outcome.told.push_back(static_cast<uint64_t>(report.tokens));
}

inline Outcome outcome_of(Trainer& trainer, int steps = kSteps) {
  Outcome outcome;
  for (int i = 0; i < steps; ++i) add(outcome, trainer.step());
  outcome.state = trainer.state_digest();
  return outcome;
}

struct Case {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys;
  int64_t micro_batches = 8;
  bool ignored = false;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

inline Training training_of(const Case& c, int64_t ranks, int threads = 1) {
  Training made{.device = "cpu", .threads = threads, .recipe = {.batch = 2}, .ignored = c.ignored};
  made.options = {
      .layers = 2, .width = 66, .heads = 3, .context = 7, .vocabulary = 70};  // parameters of several blocks, and of less than one
  made.recipe.ranks = ranks;
  made.recipe.threads = threads;
  made.recipe.micro_batches = c.micro_batches;
  made.recipe.set("warmup", "3");
  for (const auto& [key, value] : c.keys) made.recipe.set(key, value);
  return made;
}

}  // namespace st
