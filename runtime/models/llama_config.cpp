#include "models/llama_config.h"

#include <array>

#include "models/transformers_config.h"

namespace st {
namespace {

constexpr std::array<std::string_view, 1> kLlamaDropouts = {"attention_dropout"};
constexpr std::array<std::string_view, 5> kLlamaWithoutEffect = {"head_dim", "hidden_act", "pretraining_tp", "rope_parameters",
                                                                 "rope_scaling"};
constexpr std::array<WordPair, 3> kLlamaOnly = {{{"attention_bias", "false"}, {"mlp_bias", "false"}, {"model_type", "\"llama\""}}};
constexpr ConfigRules kLlamaRules = {.name = "llama-hf",
                                     .model = "llama",
                                     .aliases = {},
                                     .dropouts = kLlamaDropouts,
                                     .without_effect = kLlamaWithoutEffect,
                                     .only = kLlamaOnly};

/// Plain rotary positions only; rope_parameters (transformers 5) and rope_scaling may also name their base.
void read_rope(const TransformersConfig& config, std::string_view key, LlamaOptions& o) {
  const Json* rope = config.find(key);
  if (rope == nullptr) return;
  if (!rope->is(Json::Kind::object)) config.refuse(key, *rope, "rope_type \"default\"");
  for (const auto& [name, value] : rope->members()) {
    if (name == "rope_theta")
      read_option("llama-hf", "rope_theta", value, {{"rope_theta", &o.rope_base}});
    else if ((name != "rope_type" && name != "type") || value.dump() != "\"default\"")
      config.refuse(key, *rope, "rope_type \"default\"");
  }
}

}  // namespace

LlamaConfig read_llama_config(std::string_view json) {
  const TransformersConfig config(kLlamaRules, json);
  LlamaConfig made;
  LlamaOptions& o = made.options;
  o = {.layers = 32, .width = 4096, .heads = 32, .context = 2048, .vocabulary = 32000, .ffn = 11008, .rms_norm_epsilon = 1e-6};
  made.not_taken = config.read({{"hidden_size", &o.width},
                                {"intermediate_size", &o.ffn},
                                {"max_position_embeddings", &o.context},
                                {"num_attention_heads", &o.heads},
                                {"num_hidden_layers", &o.layers},
                                {"num_key_value_heads", &o.groups},
                                {"rms_norm_eps", &o.rms_norm_epsilon},
                                {"rope_theta", &o.rope_base},
                                {"tie_word_embeddings", &o.tied_embedding},
                                {"vocab_size", &o.vocabulary}});
  read_rope(config, "rope_scaling", o);
  read_rope(config, "rope_parameters", o);
  if (const Json* act = config.find("hidden_act"); act != nullptr && act->dump() != "\"silu\"" && act->dump() != "\"swish\"")
    config.refuse("hidden_act", *act, "\"silu\"");
  check_options(o);
  config.require_size("head_dim", o.width / o.heads, "hidden_size / num_attention_heads");
  return made;
}

}  // namespace st
