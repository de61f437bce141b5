// The models that are built in, by name and JSON options: what st_model_builtin and --model take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "models/gpt.h"
#include "models/mlp.h"

namespace st {

/// {"layers": 4, "width": 128, "heads": 4, "context": 64, "vocabulary": 256, "activation": "gelu_new", "layer_norm_epsilon": 1e-5,
/// "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false}; a missing key, or empty text, keeps the default. Throws
/// invalid_argument: an unknown key (the nearest is named), a value of the wrong kind, and what check_options() refuses.
GptOptions gpt_options(std::string_view json);

/// {"inputs": 1, "hidden": [64, 64], "outputs": 1, "activation": "gelu", "loss": "mse"}; the same rules.
MlpOptions mlp_options(std::string_view json);

/// "gpt"; "gpt2", the same model whose options are Hugging Face's config.json (gpt2_config.h); "mlp".
const std::vector<std::string>& builtin_models();
/// Keys of these options that the model does not take and the caller should hear of (Gpt2Config::not_taken).
std::vector<std::string> keys_not_taken(std::string_view model, std::string_view json);

/// Throws invalid_argument for an unknown name (the nearest is named) and for bad options.
Program build_builtin(std::string_view model, std::string_view json);
int64_t builtin_parameter_count(std::string_view model, std::string_view json);

}  // namespace st
