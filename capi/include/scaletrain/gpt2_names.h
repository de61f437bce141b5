/* Hugging Face's names for the weights of GPT-2, as renames for st_read_options: with these, st_model_read reads a model.safetensors of
 * GPT2LMHeadModel or GPT2Model unchanged (partial 1 skips the causal masks in old files). The model is st_model_builtin "gpt2" of the
 * config.json next to the file. Both store a product's weight as [inputs, outputs] and tie the head to the embedding, so nothing is
 * transposed. scaletrain.h does not include this header. */
#ifndef SCALETRAIN_GPT2_NAMES_H
#define SCALETRAIN_GPT2_NAMES_H

#include <scaletrain/model.h>

/* First the names that GPT2LMHeadModel.save_pretrained writes, then those in files of the bare GPT2Model. */
#define ST_GPT2_NAMES(prefix)                                                                                                           \
  {prefix "wte.weight", "token_embedding.weight"}, {prefix "wpe.weight", "position_embedding.weight"},                                  \
      {prefix "h.*.ln_1.weight", "block.*.attention_norm.gamma"}, {prefix "h.*.ln_1.bias", "block.*.attention_norm.beta"},              \
      {prefix "h.*.attn.c_attn.weight", "block.*.attention.qkv.weight"}, {prefix "h.*.attn.c_attn.bias", "block.*.attention.qkv.bias"}, \
      {prefix "h.*.attn.c_proj.weight", "block.*.attention.projection.weight"},                                                         \
      {prefix "h.*.attn.c_proj.bias", "block.*.attention.projection.bias"}, {prefix "h.*.ln_2.weight", "block.*.mlp_norm.gamma"},       \
      {prefix "h.*.ln_2.bias", "block.*.mlp_norm.beta"}, {prefix "h.*.mlp.c_fc.weight", "block.*.mlp.expand.weight"},                   \
      {prefix "h.*.mlp.c_fc.bias", "block.*.mlp.expand.bias"}, {prefix "h.*.mlp.c_proj.weight", "block.*.mlp.contract.weight"},         \
      {prefix "h.*.mlp.c_proj.bias", "block.*.mlp.contract.bias"}, {prefix "ln_f.weight", "final_norm.gamma"}, {                        \
    prefix "ln_f.bias", "final_norm.beta"                                                                                               \
  }

static const st_rename st_gpt2_names[] = {ST_GPT2_NAMES("transformer."), ST_GPT2_NAMES("")};
enum { ST_GPT2_NAME_COUNT = sizeof st_gpt2_names / sizeof st_gpt2_names[0] };

#endif
