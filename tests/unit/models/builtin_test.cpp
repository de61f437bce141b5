#include "models/builtin.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace st {
namespace {

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  return "";
}

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
  EXPECT_EQ(refusal_of([] { gpt_options(R"({"width":12.5})"); }), "gpt: width must be a whole number, got 12.5");
  EXPECT_NE(refusal_of([] { gpt_options(R"({"width":"128"})"); }), "");
  EXPECT_NE(refusal_of([] { gpt_options(R"({"width":null})"); }), "");
  EXPECT_NE(refusal_of([] { gpt_options(R"({"width":18446744073709551615})"); }), "");
  EXPECT_NE(refusal_of([] { gpt_options(R"({"width":1e300})"); }), "");
  EXPECT_NE(refusal_of([] { mlp_options(R"({"hidden":8})"); }), "");
  EXPECT_NE(refusal_of([] { mlp_options(R"({"hidden":[8,"x"]})"); }), "");
}

TEST(Builtin, NamesTheNearestOfWhatItDoesNotKnow) {
  EXPECT_EQ(refusal_of([] { gpt_options(R"({"layer":2})"); }),
            "gpt: unknown option layer; did you mean layers? There are: layers, width, heads, context, vocabulary");
  EXPECT_EQ(refusal_of([] { build_builtin("gtp", ""); }), "model: none is called gtp; did you mean gpt? There are: gpt, mlp");
  EXPECT_NE(refusal_of([] { gpt_options("[1]"); }), "");
  EXPECT_NE(refusal_of([] { gpt_options("{"); }), "");
}

TEST(Builtin, BuildsEachModelByName) {
  for (const std::string& name : builtin_models()) {
    const Program program = build_builtin(name, "");
    int64_t count = 0;
    for (const Slot& slot : program.slots)
      if (slot.role == Role::parameter) count += slot.type.shape.elements();
    EXPECT_EQ(count, builtin_parameter_count(name, "")) << name;
  }
}

}  // namespace
}  // namespace st
