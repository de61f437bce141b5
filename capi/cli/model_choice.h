// Which model `scaletrain train` builds: what the options say, what a config.json of Hugging Face's says, or what the run's checkpoints are
// of.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// The MODEL options as text; "": not given.
struct ModelOptions {
  std::string layers, width, heads, context, vocabulary, activation, layer_norm_epsilon;

  void add(CLI::App& app);
};

/// What a checkpoint's metadata calls the model that it is of, as text: ModelChoice::known().
inline constexpr const char* kModelOfRun = "model";
/// That of a manifest (st_checkpoint_inspect); null: it does not say.
Json model_of_checkpoint(const Json& manifest);

class ModelChoice {
 public:
  /// The model "gpt" of these options.
  explicit ModelChoice(const ModelOptions& options);
  /// {"name": "gpt2", "options": {..}}, found in `source`, "hf/config.json". Throws Failure(kRefused) for an option that says otherwise.
  ModelChoice(const Json& known, const std::string& source, const ModelOptions& options);

  /// As the second constructor takes it: what a checkpoint keeps.
  Json known() const { return {{"name", name_}, {"options", options_}}; }
  const std::string& source() const { return source_; }  // "": the options
  int64_t context() const;
  /// layers, width, heads, context, vocabulary.
  Json sizes() const;
  /// Takes the data's vocabulary where none was named. Throws Failure(kRefused) where the model's has no room for the data's ids.
  void fit_vocabulary(int64_t of_data, const std::string& data);
  Model make(st_context* context, int64_t seed) const;

 private:
  std::string name_ = "gpt", source_;
  Json options_ = Json::object();
};

}  // namespace cli
