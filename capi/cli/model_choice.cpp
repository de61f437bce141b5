#include "model_choice.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

namespace cli {
namespace {

/// An option of a model, and the equivalent key of Hugging Face's configuration of it.
struct ModelKey {
  const char* option;
  std::string ModelOptions::*given;
  const char *ours, *theirs, *also_theirs;
  const char *standard, *their_standard;  // defaults as JSON; null: from the data
  bool is_size = true;
};
constexpr ModelKey kGptKeys[] = {{"--layers", &ModelOptions::layers, "layers", "n_layer", "num_hidden_layers", "4", "12"},
                                 {"--width", &ModelOptions::width, "width", "n_embd", "hidden_size", "128", "768"},
                                 {"--heads", &ModelOptions::heads, "heads", "n_head", "num_attention_heads", "4", "12"},
                                 {"--context", &ModelOptions::context, "context", "n_positions", "max_position_embeddings", "64", "1024"},
                                 {"--vocabulary", &ModelOptions::vocabulary, "vocabulary", "vocab_size", "vocab_size", "null", "50257"},
                                 {"--activation", &ModelOptions::activation, "activation", "activation_function", "activation_function",
                                  "\"gelu_new\"", "\"gelu_new\"", false},
                                 {"--layer-norm-epsilon", &ModelOptions::layer_norm_epsilon, "layer_norm_epsilon", "layer_norm_epsilon",
                                  "layer_norm_epsilon", "1e-5", "1e-5", false}};
constexpr ModelKey kLlamaKeys[] = {
    {"--layers", &ModelOptions::layers, "layers", "num_hidden_layers", "num_hidden_layers", "4", "32"},
    {"--width", &ModelOptions::width, "width", "hidden_size", "hidden_size", "128", "4096"},
    {"--heads", &ModelOptions::heads, "heads", "num_attention_heads", "num_attention_heads", "4", "32"},
    {"--kv-heads", &ModelOptions::groups, "groups", "num_key_value_heads", "num_key_value_heads", "0", "0"},
    {"--context", &ModelOptions::context, "context", "max_position_embeddings", "max_position_embeddings", "64", "2048"},
    {"--vocabulary", &ModelOptions::vocabulary, "vocabulary", "vocab_size", "vocab_size", "null", "32000"},
    {"--ffn", &ModelOptions::ffn, "ffn", "intermediate_size", "intermediate_size", "0", "11008"},
    {"--rope-base", &ModelOptions::rope_base, "rope_base", "rope_theta", "rope_theta", "10000.0", "10000.0", false},
    {"--rms-norm-epsilon", &ModelOptions::rms_norm_epsilon, "rms_norm_epsilon", "rms_norm_eps", "rms_norm_eps", "1e-5", "1e-6", false},
    {"--tied-embedding", &ModelOptions::tied_embedding, "tied_embedding", "tie_word_embeddings", "tie_word_embeddings", "false", "false",
     false}};

/// A model that trains on text; `theirs` is the built-in model whose options are its config.json.
struct TextModel {
  const char *ours, *theirs;
  std::span<const ModelKey> keys;

  const ModelKey& key(std::string_view name) const {
    return *std::ranges::find(keys, name, [](const ModelKey& k) { return k.ours; });
  }
  bool has(const std::string& option) const {
    return std::ranges::any_of(keys, [&](const ModelKey& key) { return key.option == option; });
  }
};
constexpr TextModel kTextModels[] = {{"gpt", "gpt2", kGptKeys}, {"llama", "llama-hf", kLlamaKeys}};

/// The text model of a built-in model; null: it is none.
const TextModel* text_model(const std::string& name) {
  const auto* found = std::ranges::find_if(kTextModels, [&](const TextModel& model) { return name == model.ours || name == model.theirs; });
  return found == std::end(kTextModels) ? nullptr : found;
}

/// Refuses options that only other models have.
void refuse_others_options(const TextModel& model, const ModelOptions& options, const std::string& source) {
  for (const TextModel& other : kTextModels)
    for (const ModelKey& key : other.keys)
      if (!(options.*key.given).empty() && !model.has(key.option))
        refuse(key.option, " is an option of the model ", other.ours, ", but ", source.empty() ? "--model" : "the model of " + source,
               " is ", model.ours, "; leave ", key.option, " out");
}

Json given_value(const ModelKey& key, const ModelOptions& options) {
  const std::string& text = options.*key.given;
  const Json standard = Json::parse(key.standard);
  if (standard.is_string()) return text;
  if (standard.is_boolean()) return text == "true";
  if (standard.is_number_float()) return real_number(key.option, text);
  return whole_number(key.option, text);
}

/// The value in a model's options, or its default.
Json value_of(const ModelKey& key, const std::string& model, const Json& options) {
  const bool is_theirs = model == text_model(model)->theirs;
  const Json rope = is_theirs && options.contains("rope_parameters") ? options["rope_parameters"] : Json();
  for (const char* name : {is_theirs ? key.theirs : key.ours, is_theirs ? key.also_theirs : key.ours})
    for (const Json& keys : {options, rope})
      if (keys.contains(name) && !keys[name].is_null()) return keys[name];
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
  const auto add = [&app](const char* option, std::string& value, const char* help) { add_text(app, option, value, help)->group("Model"); };
  add("--model", model, "gpt: GPT-2's architecture; llama: Llama's [gpt]");
  add("--layers", layers, "blocks [4]");
  add("--width", width, "width of the residual stream [128]");
  add("--heads", heads, "attention heads; a divisor of the width [4]");
  add("--kv-heads", groups, "llama: heads of keys and values (the key groups); a divisor of the heads [as many as heads]");
  add("--context", context, "tokens per row [64]");
  add("--vocabulary", vocabulary, "number of token ids; default: the data's, 256 for text");
  add("--ffn", ffn, "llama: width between the MLP's products [8/3 of the width, rounded up to a multiple of 256]");
  add("--activation", activation, "gpt: gelu_new (with tanh), gelu (exact), relu, silu, tanh [gelu_new]");
  add("--layer-norm-epsilon", layer_norm_epsilon, "gpt: epsilon that norms add to the variance [1e-5]");
  add("--rms-norm-epsilon", rms_norm_epsilon, "llama: epsilon that norms add to the mean square [1e-5]");
  add("--rope-base", rope_base, "llama: base of the rotary positions' frequencies [10000]");
  app.add_flag("--tied-embedding", tied_embedding, "llama: the head is the token embedding")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group("Model");
}

ModelChoice::ModelChoice(const ModelOptions& options) {
  if (!options.model.empty()) name_ = options.model;
  const TextModel* model = text_model(name_);
  if (model == nullptr || name_ != model->ours)
    refuse("--model is ", name_, "; use gpt or llama, or train and plan other models in a program (st_model_builtin, st_model_create)");
  refuse_others_options(*model, options, "");
  for (const ModelKey& key : model->keys) {
    const Json value = (options.*key.given).empty() ? Json::parse(key.standard) : given_value(key, options);
    if (!value.is_null()) options_[key.ours] = value;
  }
}

ModelChoice::ModelChoice(const Json& known, const std::string& source, const ModelOptions& options)
    : name_(known.at("name").get<std::string>()), source_(source), options_(known.at("options")) {
  const TextModel* model = text_model(name_);
  if (model == nullptr) refuse("the model of ", source_, ", ", name_, ", does not train on text; use a gpt or a llama");
  if (!options.model.empty() && options.model != model->ours && options.model != name_)
    refuse("--model is ", options.model, ", but the model of ", source_, " is ", model->ours, "; leave --model out");
  refuse_others_options(*model, options, source_);
  for (const ModelKey& key : model->keys) {
    if ((options.*key.given).empty()) continue;
    const Json asked = given_value(key, options), there = value_of(key, name_, options_);
    if (name_ == "llama-hf" && key.given == &ModelOptions::context && source_.ends_with(".json")) {
      // No weight of a Llama has the size of its context, which is often longer than a run's.
      options_[key.theirs] = asked;
      continue;
    }
    if (asked != there)
      refuse(key.option, " is ", options.*key.given, ", but the model of ", source_, " has ",
             name_ == model->theirs ? key.theirs : key.ours, " ", there.dump(), "; leave ", key.option, " out");
  }
}

std::string ModelChoice::model() const { return text_model(name_)->ours; }

Json ModelChoice::sizes() const {
  Json sizes = Json::object();
  for (const ModelKey& key : text_model(name_)->keys)
    if (const Json value = value_of(key, name_, options_); key.is_size && value != 0) sizes[key.ours] = value;
  return sizes;
}

int64_t ModelChoice::context() const {
  const Json context = value_of(text_model(name_)->key("context"), name_, options_);
  if (!context.is_number_integer() || context < 1)
    refuse(source_.empty() ? "--context" : "the context of " + source_, " is ", context.dump(), "; give at least 1");
  return context.get<int64_t>();
}

void ModelChoice::fit_vocabulary(int64_t of_data, const std::string& data) {
  const ModelKey& key = text_model(name_)->key("vocabulary");
  const Json vocabulary = value_of(key, name_, options_);
  if (vocabulary.is_null()) options_[key.ours] = of_data;
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
