// A small GPT on several ranks and the results of its first steps, for tests that compare numbers of ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "token_rows.h"
#include "training.h"

namespace st {

constexpr int kSteps = 4;
constexpr int64_t kTokens = 7, kVocabulary = 70, kWidth = 45;  // of training_of()'s models
constexpr int64_t kCodedWidth = 66;

struct Outcome {
  std::vector<uint64_t> told;  // values of the reports, as bits
  std::string state;
  int skipped = 0;  // number of skipped steps; told has which
  bool operator==(const Outcome& other) const { return told == other.told && state == other.state; }
};

inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.state;
  for (const uint64_t bits : outcome.told) *out << " " << std::bit_cast<double>(bits);
}

inline void add(Outcome& outcome, const StepReport& report) {
  for (const double value : {report.loss, report.grad_norm, report.loss_scale, report.lr})
    outcome.told.push_back(std::bit_cast<uint64_t>(value));
  for (const int64_t value : {report.tokens, report.skipped ? int64_t{1} : 0}) outcome.told.push_back(static_cast<uint64_t>(value));
  outcome.skipped += report.skipped ? 1 : 0;
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
  bool half_budget = false;  // recompute auto gets half_budget()
  int64_t width = kWidth;    // kCodedWidth: adamw-8bit stores the moments of the embedding and of all products in 8 bits
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// fp16 with a loss scale so high that some of kSteps steps are skipped, with 5 and with 8 micro-batches. Some must not be, or the test
/// would compare only the initial weights.
inline std::vector<std::pair<std::string, std::string>> skipping_fp16(const char* loss_scale = "8388608") {
  return {{"precision", "\"fp16\""}, {"loss_scale_initial", loss_scale}};
}

/// Everything that can be in bf16 is.
inline std::vector<std::pair<std::string, std::string>> all_in_bf16(const char* recompute = "\"none\"") {
  std::vector<std::pair<std::string, std::string>> keys = {{"precision", "\"bf16\""}, {"recompute", recompute}};
  for (const char* key : {"residual_dtype", "gradient_dtype", "accumulate_dtype"}) keys.emplace_back(key, "\"bf16\"");
  return keys;
}

inline void expect_skips_and_updates(const Case& c, const Outcome& outcome) {
  if (c.keys.empty() || c.keys.front().second != "\"fp16\"") return;
  EXPECT_GT(outcome.skipped, 0) << c.name;
  EXPECT_LT(outcome.skipped, kSteps) << c.name;
}

/// Bytes half-way between this training's activations without recompute and with full recompute. Both are taken from plans, because they
/// include the kernels' workspace, which depends on the processor.
inline int64_t half_budget(Training training) {
  training.recipe.recompute_budget = 0;
  int64_t bytes = 0;
  for (const char* policy : {"none", "full"}) {
    training.recipe.recompute = policy;
    const auto trainer = training.trainer(false);
    for (const Arena arena : {Arena::activations, Arena::stash, Arena::workspace}) bytes += trainer->plan().memory.of(arena);
  }
  return bytes / 2;
}

inline Training training_of(const Case& c, int64_t ranks, int threads = 1) {
  Training made{.device = "cpu", .threads = threads, .recipe = {.batch = 2}, .ignored = c.ignored};
  made.options = {.layers = 2,
                  .width = c.width,
                  .heads = 3,
                  .context = kTokens,
                  .vocabulary = kVocabulary};  // parameters of one to eight blocks of 1024 elements, and smaller than one
  made.recipe.ranks = ranks;
  made.recipe.threads = threads;
  made.recipe.micro_batches = c.micro_batches;
  made.recipe.set("warmup", "3");
  for (const auto& [key, value] : c.keys) made.recipe.set(key, value);
  if (c.half_budget) made.recipe.recompute_budget = half_budget(made);
  return made;
}

inline std::shared_ptr<Model> model_of(const Training& training, bool is_late, uint64_t seed = 1) {
  ContextOptions options{.device = training.device, .threads = 1, .log = {}, .parallel = {}, .memory = {}};
  options.late_parameters = is_late;
  options.make_backend = tested_backend(training.device);
  return std::make_shared<Model>(std::make_shared<Context>(std::move(options)), build_gpt(training.options), seed);
}

/// A trainer in `own`'s group. Makes a model if none is given; without data the host gives the rows.
inline std::unique_ptr<Trainer> in_group(const Training& training, Communicator& own, std::shared_ptr<Model> model = nullptr,
                                         std::shared_ptr<const Dataset> data = nullptr) {
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  return std::make_unique<Trainer>(model ? std::move(model) : training.model(), recipe, std::move(data), PlanOptions(), &own);
}

/// Steps on these numbers of rows, given by the host.
inline Outcome outcome_of_rows(Trainer& trainer, std::initializer_list<int64_t> steps) {
  const TokenRows all(*std::max_element(steps.begin(), steps.end()), kTokens, kVocabulary);
  Outcome outcome;
  for (const int64_t rows : steps) add(outcome, trainer.step(all.first(rows)));
  outcome.state = trainer.state_digest();
  return outcome;
}

/// A training's data with a hook before each fill, on the thread that fills for the rank.
class HookedRows : public Sequences {
 public:
  explicit HookedRows(std::function<void()> before) : Sequences(50, kTokens, kVocabulary, false), before_(std::move(before)) {}

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override {
    before_();
    Sequences::fill_checked(rows, out);
  }

 private:
  std::function<void()> before_;
};

/// A trainer on HookedRows.
inline std::unique_ptr<Trainer> trainer_of(const Training& training, std::function<void()> before_each_fill) {
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  return std::make_unique<Trainer>(training.model(), recipe, std::make_shared<HookedRows>(std::move(before_each_fill)));
}

/// kSteps successful steps, one of which fails at first.
inline Outcome outcome_with_a_failure(Trainer& trainer, const std::function<void(const Error&)>& on_failure) {
  Outcome outcome;
  int failures = 0;
  for (int done = 0; done < kSteps;) {
    try {
      add(outcome, trainer.step());
      ++done;
    } catch (const Error& error) {
      ++failures;
      on_failure(error);
    }
  }
  EXPECT_EQ(failures, 1);
  outcome.state = trainer.state_digest();
  return outcome;
}

}  // namespace st
