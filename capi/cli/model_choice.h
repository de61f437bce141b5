// The model that `scaletrain train` builds: from the options, a Hugging Face config.json, or the run's checkpoints.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// The MODEL options as text; "" if not given.
struct ModelOptions {
  std::string model, layers, width, heads, groups, context, vocabulary, ffn, activation, layer_norm_epsilon, rms_norm_epsilon, rope_base,
      tied_embedding;

  void add(CLI::App& app);
};

/// The key of a checkpoint's metadata that holds ModelChoice::known() as text.
inline constexpr const char* kModelOfRun = "model";
/// The model of a manifest (st_checkpoint_inspect); null if it names none.
Json model_of_checkpoint(const Json& manifest);

class ModelChoice {
 public:
  /// The model "gpt", or the one of --model. Throws Failure(kRefused) for a model that is not known, and for an option of another model.
  explicit ModelChoice(const ModelOptions& options);
  /// {"name": "gpt2", "options": {..}}, read from `source`, such as "hf/config.json". Throws Failure(kRefused) for an option that
  /// contradicts it.
  ModelChoice(const Json& known, const std::string& source, const ModelOptions& options);

  /// In the form that the second constructor takes; a checkpoint keeps it.
  Json known() const { return {{"name", name_}, {"options", options_}}; }
  const std::string& source() const { return source_; }  // "" if from the options
  /// gpt or llama, also if a config.json describes it.
  std::string model() const;
  int64_t context() const;
  /// layers, width, heads, context, vocabulary, and of a llama groups and ffn where they are given.
  Json sizes() const;
  /// Uses the data's vocabulary if none was named. Throws Failure(kRefused) if the model's vocabulary is too small for the data's ids.
  void fit_vocabulary(int64_t of_data, const std::string& data);
  Model make(st_context* context, int64_t seed) const;

 private:
  std::string name_ = "gpt", source_;
  Json options_ = Json::object();
};

}  // namespace cli
