// config.json of Hugging Face's GPT-2 (transformers' GPT2Config) as options of the model "gpt".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/gpt.h"

namespace st {

struct Gpt2Config {
  GptOptions options;
  std::vector<std::string> not_taken;  // keys: "attn_pdrop 0.1 (dropout is the recipe's)", and those that are not known
};

/// A missing key has GPT2Config's default: empty text is GPT-2 small. Throws invalid_argument with key and value for what the model "gpt"
/// cannot be (another model_type, an n_inner of its own, an untied head, cross-attention, quantised weights) and for what check_options()
/// refuses.
Gpt2Config read_gpt2_config(std::string_view json);

}  // namespace st
