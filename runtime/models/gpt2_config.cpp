#include "models/gpt2_config.h"

#include <array>

#include "models/transformers_config.h"

namespace st {
namespace {

// GPT2Config's attribute_map: the names that all configurations of transformers share.
constexpr std::array<WordPair, 4> kGpt2Aliases = {{{"hidden_size", "n_embd"},
                                                   {"max_position_embeddings", "n_positions"},
                                                   {"num_attention_heads", "n_head"},
                                                   {"num_hidden_layers", "n_layer"}}};
constexpr std::array<std::string_view, 3> kGpt2Dropouts = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
constexpr std::array<std::string_view, 10> kGpt2WithoutEffect = {"n_ctx",
                                                                 "n_inner",
                                                                 "output_past",
                                                                 "predict_special_tokens",
                                                                 "reorder_and_upcast_attn",
                                                                 "summary_activation",
                                                                 "summary_first_dropout",
                                                                 "summary_proj_to_labels",
                                                                 "summary_type",
                                                                 "summary_use_proj"};
constexpr std::array<WordPair, 2> kGpt2Only = {{{"model_type", "\"gpt2\""}, {"tie_word_embeddings", "true"}}};
constexpr ConfigRules kGpt2Rules = {.name = "gpt2",
                                    .model = "gpt",
                                    .aliases = kGpt2Aliases,
                                    .dropouts = kGpt2Dropouts,
                                    .without_effect = kGpt2WithoutEffect,
                                    .only = kGpt2Only};

}  // namespace

Gpt2Config read_gpt2_config(std::string_view json) {
  const TransformersConfig config(kGpt2Rules, json);
  Gpt2Config made;
  GptOptions& o = made.options;
  o = {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257};
  made.not_taken = config.read({{"activation_function", &o.activation},
                                {"layer_norm_epsilon", &o.layer_norm_epsilon},
                                {"n_embd", &o.width},
                                {"n_head", &o.heads},
                                {"n_layer", &o.layers},
                                {"n_positions", &o.context},
                                {"scale_attn_by_inverse_layer_idx", &o.scale_attn_by_inverse_layer_idx},
                                {"scale_attn_weights", &o.scale_attn_weights},
                                {"vocab_size", &o.vocabulary}});
  // Other names in transformers for the tanh approximation of GELU.
  if (o.activation == "gelu_pytorch_tanh" || o.activation == "gelu_fast") o.activation = "gelu_new";
  if (o.activation == "swish") o.activation = "silu";
  check_activation("gpt2: config.json", "activation_function", o.activation);
  check_options(o);
  config.require_size("n_ctx", o.context, "its n_positions");
  config.require_size("n_inner", 4 * o.width, "4 n_embd");
  return made;
}

}  // namespace st
