#include "models/builtin.h"

#include <map>

#include "refusal.h"

namespace st {
namespace {

TEST(Builtin, ReadsOptionsAndKeepsDefaults) {
  const GptOptions all = gpt_options(R"({"layers":2,"width":64,"heads":8,"context":32,"vocabulary":1000})");
  EXPECT_EQ(all.layers, 2);
  EXPECT_EQ(all.width, 64);
  EXPECT_EQ(all.heads, 8);
  EXPECT_EQ(all.context, 32);
  EXPECT_EQ(all.vocabulary, 1000);
  for (const std::string none : {"", "{}"}) {
    EXPECT_EQ(gpt_options(none).width, GptOptions{}.width);
    EXPECT_EQ(gpt_options(none).vocabulary, 256);
    EXPECT_EQ(mlp_options(none).hidden, MlpOptions{}.hidden);
  }
  const MlpOptions mlp = mlp_options(R"({"inputs":4,"hidden":[],"outputs":3,"activation":"tanh","loss":"cross_entropy"})");
  EXPECT_EQ(mlp.inputs, 4);
  EXPECT_TRUE(mlp.hidden.empty());
  EXPECT_EQ(mlp.outputs, 3);
  EXPECT_EQ(mlp.activation, "tanh");
  EXPECT_EQ(mlp.loss, "cross_entropy");
}

TEST(Builtin, TakesWholeNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(gpt_options(R"({"width":1.28e2})").width, 128);
  EXPECT_EQ(refusal([] { gpt_options(R"({"width":12.5})"); }), "gpt: width must be a whole number, got 12.5");
  for (const char* json : {R"({"width":"128"})", R"({"width":null})", R"({"width":18446744073709551615})", R"({"width":1e300})"})
    EXPECT_TRUE(refuses({}, [&] { gpt_options(json); })) << json;
  for (const char* json : {R"({"hidden":8})", R"({"hidden":[8,"x"]})"}) EXPECT_TRUE(refuses({}, [&] { mlp_options(json); })) << json;
}

TEST(Builtin, NamesTheNearestOfWhatItDoesNotKnow) {
  EXPECT_EQ(refusal([] { gpt_options(R"({"layer":2})"); }),
            "gpt: option \"layer\" is unknown; did you mean layers? There are: layers, width, heads, context, vocabulary, activation, "
            "layer_norm_epsilon, scale_attn_weights, scale_attn_by_inverse_layer_idx");
  EXPECT_EQ(refusal([] { build_builtin("gtp", ""); }),
            "model: \"gtp\" is unknown; did you mean gpt? There are: gpt, gpt2, llama, llama-hf, mlp");
  for (const char* json : {"[1]", "{"}) EXPECT_TRUE(refuses({}, [&] { gpt_options(json); })) << json;
}

TEST(Builtin, BuildsEachModelByName) {
  const std::map<std::string, int64_t> wanted = {{"gpt", parameter_count(GptOptions{})},
                                                 {"gpt2", 124439808},  // as published
                                                 {"llama", parameter_count(LlamaOptions{})},
                                                 {"llama-hf", 6738415616},  // as published
                                                 {"mlp", parameter_count(MlpOptions{})}};
  EXPECT_EQ(builtin_models().size(), wanted.size());
  for (const std::string& name : builtin_models()) {
    const Program program = build_builtin(name, "");
    int64_t count = 0;
    for (const Slot& slot : program.slots)
      if (slot.role == Role::parameter) count += slot.type.shape.elements();
    EXPECT_EQ(count, wanted.at(name)) << name;
  }
}

}  // namespace
}  // namespace st
