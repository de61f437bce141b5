// Llama (Touvron et al. 2023, "LLaMA: open and efficient foundation language models", arXiv:2302.13971; grouped-query attention as in
// Llama 2 and 3): pre-norm blocks with RMS norms, rotary positions, a gated SiLU MLP (SwiGLU), and no biases.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

struct LlamaOptions {
  int64_t layers = 4;
  int64_t width = 128;       // C
  int64_t heads = 4;         // H; divides width into heads of even size D
  int64_t groups = 0;        // G: key and value heads; divides heads. 0: as many as heads
  int64_t context = 64;      // T: tokens in a sequence
  int64_t vocabulary = 256;  // V; the default is one token per byte value
  int64_t ffn = 0;           // F: width between the MLP's products. 0: LLaMA's rule, 8/3 C rounded up to a multiple of 256
  double rope_base = 10000;  // Llama 3: 500000
  double rms_norm_epsilon = 1e-5;
  bool tied_embedding = false;  // the head is the token embedding, as in the small models of Llama 3.2
};

/// Throws invalid_argument: a size below 1, more than 4096 layers, a width not divisible by heads, heads not divisible by groups, heads of
/// odd size, a vocabulary past 2^31 - 1, a base or epsilon that is not a number above 0.
void check_options(const LlamaOptions& options);

/// Number of scalars in all parameters; a tied weight counts once. Cheap: a host may call it before it builds. Checks the options and
/// throws invalid_argument past 2^53.
int64_t parameter_count(const LlamaOptions& options);

/// Builds one forward section.
///   inputs       "tokens" and "targets", i32 [batch, T]; a target of -100 is ignored
///   output       "logits" [batch, T, V]
///   loss         the sum and count of cross_entropy
///   parameters   normal of deviation 0.02; weights are [in, out]: y = x W; in this order:
///                  token_embedding.weight [V, C]
///                  block.<i>.attention_norm.gamma
///                  block.<i>.attention.qkv.weight [C, (H + 2 G) D]   block.<i>.attention.projection.weight [C, C]
///                  block.<i>.mlp_norm.gamma
///                  block.<i>.mlp.gate.weight [C, F]   block.<i>.mlp.up.weight [C, F]   block.<i>.mlp.down.weight [F, C]
///                  final_norm.gamma   head.weight [C, V], unless tied
///   positions    the op rope, which rotates the pairs (d, d + D/2) of a head as transformers' rotate_half does: weights of transformers
///                need no permutation of rows, unlike those of Meta's own files, which rotate neighbours
///   boundaries   scopes embedding, block.<i>, attention and mlp in each block, head
///   dropout      after the embedding and before each residual sum, with rate and seed 0, which the recipe replaces
Program build_llama(const LlamaOptions& options);

}  // namespace st
