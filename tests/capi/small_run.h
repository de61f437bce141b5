// A small model with its training data, for tests that need a working run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "held.h"

namespace st::test {

/// A GPT of a few thousand parameters, context 8.
extern const char* const kSmallGpt;
constexpr int64_t kSmallContext = 8;

/// A text of `bytes` bytes, varied enough to learn from and the same in every run. Returns its path.
std::string text_file(const std::string& name, int64_t bytes);

/// A file with these bytes in the test's own folder.
std::string file_of(const std::string& name, const std::string& bytes);

/// A trainer of the GPT with everything that it was made of; with `text` it has data. Uses dropout, so that undoing a step must also
/// restore the random numbers.
struct SmallRun {
  explicit SmallRun(const std::string& text = {}, const st_context_options* options = nullptr,
                    const char* recipe_json = R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1})",
                    const char* gpt_json = kSmallGpt);

  std::string digest() const;
  HeldContext context;
  HeldModel model;
  HeldRecipe recipe;
  HeldData data;
  HeldTrainer trainer;
};

/// A batch of `rows` rows for the GPT, made from `seed`.
class TokenBatch {
 public:
  TokenBatch(int64_t rows, uint32_t seed);
  TokenBatch(const TokenBatch&) = delete;
  TokenBatch& operator=(const TokenBatch&) = delete;

  const st_named_view* views() const { return views_; }
  st_named_view* views() { return views_; }
  std::vector<int32_t> tokens, targets;

 private:
  int64_t dims_[2];
  st_named_view views_[2];
};

/// y = sin x by one hidden layer, built op by op. Deterministic.
struct SineRun {
  explicit SineRun(const char* recipe_json = R"({"batch": 4, "accumulate": 2, "warmup": 0})");
  st_status step(st_step_report* report = nullptr) { return st_trainer_step(trainer, 2, views, report); }
  std::string digest() const;

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  HeldTrainer trainer;
  std::vector<float> x, y;  // 8 rows
  int64_t dims[2] = {8, 1};
  st_named_view views[2];
};

/// A micro-batch of SineRun: rows 4k to 4k + 3, x alone or x and y.
struct SineHalf {
  SineHalf(SineRun& run, int64_t k)
      : views{{"x", {ST_F32, 2, dims, nullptr, run.x.data() + 4 * k, 16}}, {"y", {ST_F32, 2, dims, nullptr, run.y.data() + 4 * k, 16}}},
        y(run.y.data() + 4 * k) {}
  SineHalf(const SineHalf&) = delete;
  SineHalf& operator=(const SineHalf&) = delete;

  int64_t dims[2] = {4, 1};
  st_named_view views[2];
  const float* y;
};

/// st_trainer_forward for a host that knows the number of outputs.
st_status forward(st_trainer* trainer, int64_t n, const st_named_view* batch, const st_named_view** outputs = nullptr);

/// The graph of SineRun; returns the value from which the loss is computed.
st_value sine_graph(st_graph* graph);

/// The text that a predictor generates after its prompt; if it fails, the tokens so far.
struct Written {
  st_status status;
  std::vector<int32_t> tokens;
};
Written written(st_predictor* predictor, const st_generate_options& options, const std::vector<int32_t>& prompt = {1, 2, 3});
/// Twelve tokens.
Written written(st_predictor* predictor);

std::string plan_of(st_trainer* trainer);
/// A whole number of a plan's JSON, by its first key of this name.
int64_t number_in(const std::string& json, const std::string& key);

/// The number of instructions in a step, from the plan.
int instructions_of(st_trainer* trainer);

}  // namespace st::test
