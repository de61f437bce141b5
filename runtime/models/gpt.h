// GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"): pre-norm blocks, learned positions, tanh GELU, a head
// tied to the token embedding, and GPT-2's initialisation with residual scaling.
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
  int64_t vocabulary = 256;  // V; the default is one token per byte value
  // Hugging Face's keys and words, with GPT-2's values: gelu_new is the tanh approximation, gelu the exact GELU; also relu, silu, tanh.
  std::string activation = "gelu_new";
  double layer_norm_epsilon = 1e-5;
  bool scale_attn_weights = true;                // multiplies attention scores by 1 / sqrt(C / heads)
  bool scale_attn_by_inverse_layer_idx = false;  // multiplies them by 1 / (i + 1) in block i
};

/// Throws invalid_argument: a size below 1, more than 4096 layers, a width not divisible by heads, a vocabulary past 2^31 - 1, an unknown
/// activation, an epsilon that is not a number above 0.
void check_options(const GptOptions& options);

/// Throws invalid_argument for an unknown activation; `key` is the caller's name for the option.
void check_activation(std::string_view what, std::string_view key, std::string_view name);

/// Number of scalars in all parameters; the tied weight counts once. Cheap: a host may call it before it builds. Checks the options and
/// throws invalid_argument past 2^53.
int64_t parameter_count(const GptOptions& options);

/// Builds one forward section.
///   inputs       "tokens" and "targets", i32 [batch, T]; a target of -100 is ignored
///   output       "logits" [batch, T, V]
///   loss         the sum and count of cross_entropy
///   parameters   weights are [in, out]: y = x W + b; in this order:
///                  token_embedding.weight [V, C]   position_embedding.weight [T, C]
///                  block.<i>.attention_norm.gamma .beta
///                  block.<i>.attention.qkv.weight [C, 3C] .bias   block.<i>.attention.projection.weight [C, C] .bias
///                  block.<i>.mlp_norm.gamma .beta
///                  block.<i>.mlp.expand.weight [C, 4C] .bias   block.<i>.mlp.contract.weight [4C, C] .bias
///                  final_norm.gamma .beta
///   boundaries   scopes embedding, block.<i>, attention and mlp in each block, head
///   dropout      after the embedding and before each residual sum, with rate and seed 0, which the recipe replaces; not on attention
///                probabilities, which the fused op never materialises
Program build_gpt(const GptOptions& options);

}  // namespace st
