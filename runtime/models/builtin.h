// The built-in models, by name and JSON options, for st_model_builtin and --model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/mlp.h"

namespace st {

/// {"layers": 4, "width": 128, "heads": 4, "context": 64, "vocabulary": 256, "activation": "gelu_new", "layer_norm_epsilon": 1e-5,
/// "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false}. Missing keys, or empty text, keep the defaults. Throws
/// invalid_argument: an unknown key (suggests the nearest), a value of the wrong type, and what check_options() refuses.
GptOptions gpt_options(std::string_view json);

/// {"layers": 4, "width": 128, "heads": 4, "groups": 0, "context": 64, "vocabulary": 256, "ffn": 0, "rope_base": 10000,
/// "rms_norm_epsilon": 1e-5, "tied_embedding": false}, by the same rules.
LlamaOptions llama_options(std::string_view json);

/// {"inputs": 1, "hidden": [64, 64], "outputs": 1, "activation": "gelu", "loss": "mse"}, by the same rules.
MlpOptions mlp_options(std::string_view json);

/// "gpt"; "gpt2", the same model with Hugging Face's config.json as options (gpt2_config.h); "llama"; "llama-hf", likewise
/// (llama_config.h); "mlp".
const std::vector<std::string>& builtin_models();
/// Keys in `json` that the model ignores and the caller should report (TransformersConfig::read).
std::vector<std::string> keys_not_taken(std::string_view model, std::string_view json);

/// Throws invalid_argument for an unknown name (suggests the nearest) and for bad options.
Program build_builtin(std::string_view model, std::string_view json);

}  // namespace st
