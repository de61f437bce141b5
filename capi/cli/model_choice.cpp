#include "model_choice.h"

#include <span>

namespace cli {
namespace {

/// An option of the model "gpt", and the equivalent key of Hugging Face's GPT2Config.
struct ModelKey {
  const char* option;
  std::string ModelOptions::*given;
  const char *ours, *theirs, *also_theirs;
  const char *standard, *their_standard;  // defaults as JSON; null: from the data
  const char* help;
};
constexpr ModelKey kModelKeys[] = {
    {"--layers", &ModelOptions::layers, "layers", "n_layer", "num_hidden_layers", "4", "12", "blocks [4]"},
    {"--width", &ModelOptions::width, "width", "n_embd", "hidden_size", "128", "768", "width of the residual stream [128]"},
    {"--heads", &ModelOptions::heads, "heads", "n_head", "num_attention_heads", "4", "12", "attention heads; a divisor of the width [4]"},
    {"--context", &ModelOptions::context, "context", "n_positions", "max_position_embeddings", "64", "1024", "tokens per row [64]"},
    {"--vocabulary", &ModelOptions::vocabulary, "vocabulary", "vocab_size", "vocab_size", "null", "50257",
     "number of token ids; default: the data's, 256 for text"},
    {"--activation", &ModelOptions::activation, "activation", "activation_function", "activation_function", "\"gelu_new\"", "\"gelu_new\"",
     "activation: gelu_new (with tanh), gelu (exact), relu, silu, tanh [gelu_new]"},
    {"--layer-norm-epsilon", &ModelOptions::layer_norm_epsilon, "layer_norm_epsilon", "layer_norm_epsilon", "layer_norm_epsilon", "1e-5",
     "1e-5", "epsilon that norms add to the variance [1e-5]"}};
constexpr std::span kSizeKeys = std::span(kModelKeys).first<5>();
constexpr const ModelKey &kContextKey = kModelKeys[3], &kVocabularyKey = kModelKeys[4];

Json given_value(const ModelKey& key, const ModelOptions& options) {
  const std::string& text = options.*key.given;
  const Json standard = Json::parse(key.standard);
  if (standard.is_string()) return text;
  if (standard.is_number_float()) return real_number(key.option, text);
  return whole_number(key.option, text);
}

/// The value in a model's options, or its default.
Json value_of(const ModelKey& key, const std::string& model, const Json& options) {
  const bool is_theirs = model == "gpt2";
  for (const char* name : {is_theirs ? key.theirs : key.ours, is_theirs ? key.also_theirs : key.ours})
    if (options.contains(name) && !options[name].is_null()) return options[name];
  return Json::parse(is_theirs ? key.their_standard : key.standard);
}

}  // namespace

Json model_of_checkpoint(const Json& manifest) {
  const Json& kept = manifest.contains("metadata") ? manifest["metadata"] : Json();
  if (!kept.is_object() || !kept.contains(kModelOfRun) || !kept[kModelOfRun].is_string()) return {};
  Json known = Json::parse(kept[kModelOfRun].get<std::string>(), nullptr, false);
  const bool is_one =
      known.is_object() && known.contains("name") && known["name"].is_string() && known.contains("options") && known["options"].is_object();
  return is_one ? known : Json();
}

void ModelOptions::add(CLI::App& app) {
  for (const ModelKey& key : kModelKeys) add_text(app, key.option, this->*key.given, key.help)->group("Model");
}

ModelChoice::ModelChoice(const ModelOptions& options) {
  for (const ModelKey& key : kModelKeys) {
    const Json value = (options.*key.given).empty() ? Json::parse(key.standard) : given_value(key, options);
    if (!value.is_null()) options_[key.ours] = value;
  }
}

ModelChoice::ModelChoice(const Json& known, const std::string& source, const ModelOptions& options)
    : name_(known.at("name").get<std::string>()), source_(source), options_(known.at("options")) {
  for (const ModelKey& key : kModelKeys) {
    if ((options.*key.given).empty()) continue;
    const Json asked = given_value(key, options), there = value_of(key, name_, options_);
    if (asked != there)
      refuse(key.option, " is ", options.*key.given, ", but the model of ", source_, " has ", name_ == "gpt2" ? key.theirs : key.ours, " ",
             there.dump(), "; leave ", key.option, " out");
  }
}

Json ModelChoice::sizes() const {
  Json sizes = Json::object();
  for (const ModelKey& key : kSizeKeys) sizes[key.ours] = value_of(key, name_, options_);
  return sizes;
}

int64_t ModelChoice::context() const {
  const Json context = value_of(kContextKey, name_, options_);
  if (!context.is_number_integer() || context < 1)
    refuse(source_.empty() ? "--context" : "the context of " + source_, " is ", context.dump(), "; give at least 1");
  return context.get<int64_t>();
}

void ModelChoice::fit_vocabulary(int64_t of_data, const std::string& data) {
  const Json vocabulary = value_of(kVocabularyKey, name_, options_);
  if (vocabulary.is_null()) options_[kVocabularyKey.ours] = of_data;
  if (vocabulary.is_number_integer() && vocabulary < of_data)
    refuse(source_.empty() ? "--vocabulary " : "the vocabulary of " + source_ + ", ", vocabulary.dump(),
           source_.empty() ? " is too small: " : ", is too small: ", data, " has token ids up to ", of_data - 1, "; at least ", of_data,
           " is needed");
}

Model ModelChoice::make(st_context* context, int64_t seed) const {
  st_model* made = nullptr;
  const st_status status = st_model_builtin(context, name_.c_str(), options_.dump().c_str(), seed, &made);
  if (status == ST_INVALID_ARGUMENT && !source_.empty()) refuse(source_, ": ", st_last_error());
  ask(status);
  return Model(made);
}

}  // namespace cli
