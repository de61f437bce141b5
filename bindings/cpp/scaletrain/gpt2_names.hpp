// Hugging Face's names of GPT-2's weights as renames: ReadOptions options; options.renames = gpt2_names(); model.read(file, options).
// scaletrain.hpp does not include this header.
#pragma once

#include <scaletrain/gpt2_names.h>

#include <scaletrain/model.hpp>
#include <vector>

namespace scaletrain {

/// Maps the names in a model.safetensors of GPT2LMHeadModel, or of the bare GPT2Model, to those of the model "gpt".
inline std::vector<Rename> gpt2_names() { return {ST_GPT2_NAMES("transformer."), ST_GPT2_NAMES("")}; }

}  // namespace scaletrain
