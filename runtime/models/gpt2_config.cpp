#include "models/gpt2_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/json_options.h"

namespace st {
namespace {

// GPT2Config's attribute_map: the names that all configurations of transformers share.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAliases = {{{"hidden_size", "n_embd"},
                                                                                    {"max_position_embeddings", "n_positions"},
                                                                                    {"num_attention_heads", "n_head"},
                                                                                    {"num_hidden_layers", "n_layer"}}};
// Keys that do not change the forward pass, or change only its rounding.
constexpr std::array<std::string_view, 30> kWithoutEffect = {"_name_or_path",
                                                             "architectures",
                                                             "bos_token_id",
                                                             "dtype",
                                                             "eos_token_id",
                                                             "finetuning_task",
                                                             "gradient_checkpointing",
                                                             "id2label",
                                                             "initializer_range",
                                                             "is_decoder",
                                                             "label2id",
                                                             "model_type",
                                                             "n_ctx",
                                                             "n_inner",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "output_past",
                                                             "pad_token_id",
                                                             "predict_special_tokens",
                                                             "reorder_and_upcast_attn",
                                                             "return_dict",
                                                             "summary_activation",
                                                             "summary_first_dropout",
                                                             "summary_proj_to_labels",
                                                             "summary_type",
                                                             "summary_use_proj",
                                                             "task_specific_params",
                                                             "torch_dtype",
                                                             "transformers_version",
                                                             "use_cache"};
constexpr std::array<std::string_view, 3> kDropouts = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
// The only values that the model "gpt" supports, as JSON; null is accepted too.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOnly = {{{"add_cross_attention", "false"},
                                                                                 {"is_encoder_decoder", "false"},
                                                                                 {"model_type", "\"gpt2\""},
                                                                                 {"pruned_heads", "{}"},
                                                                                 {"quantization_config", "null"},
                                                                                 {"tie_word_embeddings", "true"}}};

template <class Words>
bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

Json parse(std::string_view text) {
  Json object = parse_json(text.empty() ? "{}" : text, "gpt2: config.json");
  check(object.is(Json::Kind::object), "gpt2: config.json must be an object, got ", object.dump().substr(0, 60));
  return object;
}

/// A member with its GPT2Config name in place of the alias that all models share.
std::pair<std::string, const Json*> known(const Json::Members::value_type& member) {
  const auto* alias = std::ranges::find(kAliases, member.first, &std::pair<std::string_view, std::string_view>::first);
  return {alias == kAliases.end() ? member.first : std::string(alias->second), &member.second};
}

void require_only(const Json& config) {
  for (const auto& [key, only] : kOnly)
    if (const Json* value = config.find(key); value != nullptr && !value->is(Json::Kind::null))
      check(value->dump() == only, "gpt2: config.json has ", key, " ", value->dump(), "; the model \"gpt\" supports only ", only);
}

/// Checks a size that follows from others, if it is given.
void require_size(const Json& config, std::string_view key, int64_t size, std::string_view what) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is(Json::Kind::null)) return;
  check(value->is(Json::Kind::whole) && value->whole() == size, "gpt2: config.json has ", key, " ", value->dump(),
        "; the model \"gpt\" supports only ", what, ", ", size);
}

}  // namespace

Gpt2Config read_gpt2_config(std::string_view json) {
  const Json config = parse(json);
  require_only(config);
  Gpt2Config made;
  GptOptions& o = made.options;
  o = {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257};
  const std::vector<Option> taken = {{"activation_function", &o.activation},
                                     {"layer_norm_epsilon", &o.layer_norm_epsilon},
                                     {"n_embd", &o.width},
                                     {"n_head", &o.heads},
                                     {"n_layer", &o.layers},
                                     {"n_positions", &o.context},
                                     {"scale_attn_by_inverse_layer_idx", &o.scale_attn_by_inverse_layer_idx},
                                     {"scale_attn_weights", &o.scale_attn_weights},
                                     {"vocab_size", &o.vocabulary}};
  for (const auto& member : config.members()) {
    const auto [key, value] = known(member);
    if (value->is(Json::Kind::null)) continue;
    if (std::ranges::find(taken, key, &Option::name) != taken.end())
      read_option("gpt2", key, *value, taken);
    else if (has(kDropouts, key) && value->is_number() && value->number() != 0)
      made.not_taken.push_back(text(key, " ", value->dump(), " (dropout is set in the recipe)"));
    else if (!has(kDropouts, key) && !has(kWithoutEffect, key) &&
             std::ranges::find(kOnly, key, &std::pair<std::string_view, std::string_view>::first) == kOnly.end())
      made.not_taken.push_back(key);
  }
  // Other names in transformers for the tanh approximation of GELU.
  if (o.activation == "gelu_pytorch_tanh" || o.activation == "gelu_fast") o.activation = "gelu_new";
  if (o.activation == "swish") o.activation = "silu";
  check_activation("gpt2: config.json", "activation_function", o.activation);
  check_options(o);
  require_size(config, "n_ctx", o.context, "its n_positions");
  require_size(config, "n_inner", 4 * o.width, "4 n_embd");
  return made;
}

}  // namespace st
