// The weights of Hugging Face's Llama as those of the model "llama", and back.
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
/// The same for `--map llama`: refuses the weights of `path` if they are not a Llama's, and names the first that no Llama has.
void import_llama(const std::string& path, std::vector<StoredTensor>& weights, std::deque<std::string>& made);

/// The reverse, for row-major weights: names of LlamaForCausalLM, products as [outputs, inputs], queries, keys and values apart. Their
/// bytes are added to `made`. Throws Failure(kRefused) for a weight that a Llama does not have.
void export_llama(std::vector<StoredTensor>& weights, std::deque<std::string>& made);

}  // namespace cli
