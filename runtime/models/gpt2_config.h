// Reads the config.json of Hugging Face's GPT-2 (transformers' GPT2Config) as options of the model "gpt".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/gpt.h"

namespace st {

struct Gpt2Config {
  GptOptions options;
  std::vector<std::string> not_taken;  // unknown keys, and such as "attn_pdrop 0.1 (dropout is set in the recipe)"
};

/// A missing key keeps GPT2Config's default, so empty text is GPT-2 small. Throws invalid_argument with key and value for what the model
/// "gpt" does not support (another model_type, an n_inner other than 4 n_embd, an untied head, cross-attention, quantised weights) and for
/// what check_options() refuses.
Gpt2Config read_gpt2_config(std::string_view json);

}  // namespace st
