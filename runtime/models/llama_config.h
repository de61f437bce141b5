// Reads the config.json of Hugging Face's Llama (transformers' LlamaConfig) as options of the model "llama".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/llama.h"

namespace st {

struct LlamaConfig {
  LlamaOptions options;
  std::vector<std::string> not_taken;  // unknown keys, and such as "attention_dropout 0.1 (dropout is set in the recipe)"
};

/// A missing key keeps LlamaConfig's default, so empty text is LLaMA 7B. The base of rotary positions is read from rope_parameters, or from
/// rope_theta as older files have it. Throws invalid_argument with key and value for what the model "llama" does not support (another
/// model_type, scaled rotary positions, another activation than silu, biases, a head_dim other than the width of a head, quantised
/// weights) and for what check_options() refuses.
LlamaConfig read_llama_config(std::string_view json);

}  // namespace st
