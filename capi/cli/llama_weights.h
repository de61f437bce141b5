// The weights of Hugging Face's Llama as those of the model "llama".
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "stored_tensor.h"

namespace cli {

/// Whether the names are those of LlamaForCausalLM or LlamaModel.
bool is_llama(const std::vector<StoredTensor>& weights);

/// Renames the weights, presents products as [inputs, outputs], and joins queries, keys and values, whose bytes are added to `made`.
/// Nothing is permuted: both rotate the pairs (d, d + D/2) of a head. Drops rotary frequencies, which old files hold, and a head that is a
/// copy of the embedding; unknown names stay. Throws Failure(kRefused) for queries, keys and values that cannot be joined.
void take_llama(std::vector<StoredTensor>& weights, std::deque<std::string>& made);

}  // namespace cli
