#include "models/gpt2_config.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace st {
namespace {

TEST(Gpt2Config, IsGpt2SmallUnlessItSaysOtherwise) {
  EXPECT_EQ(parameter_count(read_gpt2_config("").options), 124439808);  // as published
  const GptOptions o = read_gpt2_config(R"({"model_type":"gpt2","n_layer":2,"n_embd":24,"n_head":3,"n_positions":16,"n_ctx":16,
      "vocab_size":61,"n_inner":null,"activation_function":"gelu","layer_norm_epsilon":1e-3,"scale_attn_weights":false,
      "scale_attn_by_inverse_layer_idx":true,"tie_word_embeddings":true})")
                           .options;
  EXPECT_EQ(o.layers, 2);
  EXPECT_EQ(o.width, 24);
  EXPECT_EQ(o.heads, 3);
  EXPECT_EQ(o.context, 16);
  EXPECT_EQ(o.vocabulary, 61);
  EXPECT_EQ(o.activation, "gelu");
  EXPECT_EQ(o.layer_norm_epsilon, 1e-3);
  EXPECT_FALSE(o.scale_attn_weights);
  EXPECT_TRUE(o.scale_attn_by_inverse_layer_idx);
  EXPECT_EQ(read_gpt2_config(R"({"num_hidden_layers":3,"hidden_size":36})").options.width, 36);
  EXPECT_EQ(read_gpt2_config(R"({"activation_function":"gelu_pytorch_tanh"})").options.activation, "gelu_new");
}

TEST(Gpt2Config, RefusesWhatTheModelIsNotByKeyAndValue) {
  const auto refused = [](const char* json) { return refusal([&] { read_gpt2_config(json); }); };
  EXPECT_TRUE(says(refused(R"({"model_type":"llama"})"), {"model_type \"llama\"", "\"gpt2\""}));
  EXPECT_TRUE(says(refused(R"({"tie_word_embeddings":false})"), {"tie_word_embeddings false"}));
  EXPECT_TRUE(says(refused(R"({"quantization_config":{"bits":4}})"), {"quantization_config"}));
  EXPECT_TRUE(says(refused(R"({"n_inner":100})"), {"n_inner 100", "3072"}));
  EXPECT_TRUE(says(refused(R"({"n_ctx":512})"), {"n_ctx 512", "1024"}));
  EXPECT_TRUE(says(refused(R"({"activation_function":"quick_gelu"})"), {"activation_function", "quick_gelu", "gelu"}));
  EXPECT_TRUE(says(refused(R"({"layer_norm_epsilon":0})"), {"layer_norm_epsilon", "0"}));
  EXPECT_TRUE(says(refused(R"({"n_head":"twelve"})"), {"n_head", "twelve"}));
  EXPECT_TRUE(says(refused("[]"), {"config.json", "object"}));
}

TEST(Gpt2Config, SaysWhatItDoesNotTake) {
  const Gpt2Config read = read_gpt2_config(R"({"attn_pdrop":0.1,"embd_pdrop":0,"rotary":true,"use_cache":true,"architectures":["X"]})");
  EXPECT_THAT(read.not_taken, testing::ElementsAre(testing::HasSubstr("attn_pdrop 0.1"), testing::HasSubstr("rotary")));
}

}  // namespace
}  // namespace st
