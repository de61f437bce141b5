// GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"): pre-norm blocks, learned positions, tanh GELU, a head
// tied to the token embedding, its initialisation with residual scaling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/program.h"

namespace st {

struct GptOptions {
  int64_t layers = 4;
  int64_t width = 128;       // C
  int64_t heads = 4;         // divides width
  int64_t context = 64;      // T: tokens in a sequence
  int64_t vocabulary = 256;  // V: bytes
  // Hugging Face's keys and words, with GPT-2's values: gelu_new is the GELU with tanh, gelu the exact one; relu, silu, tanh.
  std::string activation = "gelu_new";
  double layer_norm_epsilon = 1e-5;
  bool scale_attn_weights = true;                // the scores of attention, by 1 / sqrt(C / heads)
  bool scale_attn_by_inverse_layer_idx = false;  // and by 1 / (i + 1) in block i
};

/// Throws invalid_argument: a size below 1, more than 4096 layers, a width that the heads do not divide, sizes that overflow, an unknown
/// activation, an epsilon that is not a number above 0.
void check_options(const GptOptions& options);

/// "gpt: no activation is called gello; did you mean gelu? ...": `key` is what the caller calls it.
void check_activation(std::string_view what, std::string_view key, std::string_view name);

/// Scalars in all parameters, the tied weight once. Cheap: a host asks before it builds. Checks the options.
int64_t parameter_count(const GptOptions& options);

/// One forward section. Inputs "tokens" and "targets", i32 [batch, T], a target of -100 is ignored; output "logits" [batch, T, V]; the loss
/// is cross-entropy's sum and count. Weights are [in, out]: y = x W + b. Parameters, in this order:
///   token_embedding.weight [V, C]   position_embedding.weight [T, C]
///   block.<i>.attention_norm.gamma .beta   block.<i>.attention.qkv.weight [C, 3C] .bias   block.<i>.attention.projection.weight [C, C]
///   .bias block.<i>.mlp_norm.gamma .beta   block.<i>.mlp.expand.weight [C, 4C] .bias   block.<i>.mlp.contract.weight [4C, C] .bias
///   final_norm.gamma .beta
/// Boundary scopes: embedding, block.<i>, in it attention and mlp, head.
/// Dropout sites stand after the embedding and before each residual sum. Attention's own probabilities are not dropped: the fused op never
/// has them in memory. Their rate and seed are 0 here: the recipe's take their place.
Program build_gpt(const GptOptions& options);

}  // namespace st
