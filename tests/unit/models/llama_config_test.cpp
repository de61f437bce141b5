#include "models/llama_config.h"

#include <gmock/gmock.h>

#include "models/builtin.h"
#include "refusal.h"

namespace st {
namespace {

TEST(LlamaConfig, IsLlama7bUnlessItSaysOtherwise) {
  EXPECT_EQ(parameter_count(read_llama_config("").options), 6738415616);  // as published
  EXPECT_EQ(read_llama_config("").options.rms_norm_epsilon, 1e-6);
  const LlamaOptions o = read_llama_config(R"({"model_type":"llama","hidden_size":64,"intermediate_size":112,"num_hidden_layers":2,
      "num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":16,"vocab_size":128,"rms_norm_eps":1e-5,"head_dim":16,
      "rope_parameters":{"rope_type":"default","rope_theta":500000.0},"hidden_act":"silu","attention_bias":false,"mlp_bias":false,
      "rope_scaling":null,"tie_word_embeddings":true})")
                             .options;
  EXPECT_EQ(o.layers, 2);
  EXPECT_EQ(o.width, 64);
  EXPECT_EQ(o.heads, 4);
  EXPECT_EQ(o.groups, 2);
  EXPECT_EQ(o.context, 16);
  EXPECT_EQ(o.vocabulary, 128);
  EXPECT_EQ(o.ffn, 112);
  EXPECT_EQ(o.rope_base, 500000);
  EXPECT_EQ(o.rms_norm_epsilon, 1e-5);
  EXPECT_TRUE(o.tied_embedding);
  EXPECT_EQ(read_llama_config(R"({"rope_theta":500000.0,"num_key_value_heads":null})").options.rope_base, 500000);
}

struct RefusedConfig {
  const char* json;
  const char* message;
};
class LlamaConfigRefusals : public testing::TestWithParam<RefusedConfig> {};

TEST_P(LlamaConfigRefusals, NameKeyAndValue) {
  EXPECT_EQ(refusal([] { build_builtin("llama-hf", GetParam().json); }), GetParam().message);
}

#define ST_ONLY(value, only) "llama-hf: config.json has " value "; the model \"llama\" supports only " only
INSTANTIATE_TEST_SUITE_P(
    All, LlamaConfigRefusals,
    testing::Values(RefusedConfig{R"({"model_type":"mistral"})", ST_ONLY("model_type \"mistral\"", "\"llama\"")},
                    RefusedConfig{R"({"attention_bias":true})", ST_ONLY("attention_bias true", "false")},
                    RefusedConfig{R"({"mlp_bias":true})", ST_ONLY("mlp_bias true", "false")},
                    RefusedConfig{R"({"hidden_act":"gelu"})", ST_ONLY("hidden_act \"gelu\"", "\"silu\"")},
                    RefusedConfig{R"({"quantization_config":{"bits":4}})", ST_ONLY("quantization_config {\"bits\":4}", "null")},
                    RefusedConfig{R"({"rope_scaling":{"type":"linear","factor":2.0}})",
                                  ST_ONLY("rope_scaling {\"type\":\"linear\",\"factor\":2.0}", "rope_type \"default\"")},
                    RefusedConfig{R"({"rope_parameters":{"rope_type":"llama3","rope_theta":5e5}})",
                                  ST_ONLY("rope_parameters {\"rope_type\":\"llama3\",\"rope_theta\":500000.0}", "rope_type \"default\"")},
                    RefusedConfig{R"({"head_dim":64})", ST_ONLY("head_dim 64", "hidden_size / num_attention_heads, 128")},
                    RefusedConfig{R"({"rms_norm_eps":"tiny"})", "llama-hf: rms_norm_eps must be a finite number, got \"tiny\""},
                    RefusedConfig{R"({"num_key_value_heads":5})",
                                  "llama: groups must divide heads, or be 0 for as many, got groups 5 and heads 32"},
                    RefusedConfig{"[]", "llama-hf: config.json must be an object, got []"}));
#undef ST_ONLY

TEST(LlamaConfig, SaysWhatItDoesNotTake) {
  const char* json = R"({"attention_dropout":0.1,"sliding_window":4096,"use_cache":true,"pretraining_tp":1,"architectures":["X"]})";
  EXPECT_THAT(keys_not_taken("llama-hf", json),
              testing::ElementsAre("attention_dropout 0.1 (dropout is set in the recipe)", "sliding_window"));
}

}  // namespace
}  // namespace st
