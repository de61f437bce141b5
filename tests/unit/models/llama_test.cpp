#include "models/llama.h"

#include <set>
#include <utility>
#include <vector>

#include "ir/verify.h"
#include "models/builtin.h"
#include "refusal.h"

namespace st {
namespace {

LlamaOptions small_llama() { return {.layers = 2, .width = 24, .heads = 4, .groups = 2, .context = 5, .vocabulary = 17, .ffn = 20}; }

std::vector<Slot> parameters_of(const Program& program) {
  std::vector<Slot> parameters;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::parameter) parameters.push_back(slot);
  return parameters;
}

int64_t elements_of(const Program& program) {
  int64_t elements = 0;
  for (const Slot& slot : parameters_of(program)) elements += slot.type.shape.elements();
  return elements;
}

TEST(Llama, IsVerifiedForEveryBatch) {
  for (const int64_t batch : {1, 3}) {
    const Program bound = bind(build_llama(small_llama()), batch);
    EXPECT_NO_THROW(verify(bound, "bind"));
    ASSERT_EQ(bound.outputs.size(), 1U);
    EXPECT_EQ(bound.outputs[0].name, "logits");
    EXPECT_EQ(bound.find(Phase::forward)->graph.type(bound.outputs[0].value).shape, (Shape{batch, 5, 17}));
  }
}

TEST(Llama, HasTheParametersOfLlamaInTheirOrder) {
  const Program program = build_llama(small_llama());
  std::vector<std::pair<std::string, Shape>> wanted = {{"token_embedding.weight", {17, 24}}};
  for (const std::string block : {"block.0.", "block.1."})
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{{"attention_norm.gamma", {24}},
                                                                                {"attention.qkv.weight", {24, 24 + 2 * 2 * 6}},
                                                                                {"attention.projection.weight", {24, 24}},
                                                                                {"mlp_norm.gamma", {24}},
                                                                                {"mlp.gate.weight", {24, 20}},
                                                                                {"mlp.up.weight", {24, 20}},
                                                                                {"mlp.down.weight", {20, 24}}})
      wanted.emplace_back(block + name, shape);
  wanted.insert(wanted.end(), {{"final_norm.gamma", {24}}, {"head.weight", {24, 17}}});
  std::vector<std::pair<std::string, Shape>> made;
  for (const Slot& slot : parameters_of(program)) {
    made.emplace_back(slot.name, slot.type.shape);
    const bool is_gain = slot.name.ends_with("gamma");
    EXPECT_EQ(slot.init.kind, is_gain ? Init::ones : Init::normal) << slot.name;
    EXPECT_EQ(slot.init.scale, is_gain ? 1 : 0.02) << slot.name;
  }
  EXPECT_EQ(made, wanted);
  EXPECT_EQ(elements_of(program), parameter_count(small_llama()));

  LlamaOptions tied = small_llama();
  tied.tied_embedding = true;
  EXPECT_EQ(build_llama(tied).slot_named("head.weight"), -1);
  EXPECT_EQ(elements_of(build_llama(tied)), parameter_count(tied));
}

struct Published {
  const char* name;
  LlamaOptions options;
  int64_t parameters;
};
class PublishedLlama : public testing::TestWithParam<Published> {};

/// A program has no weights: that of any size is built at once.
TEST_P(PublishedLlama, HasThePublishedNumberOfParameters) {
  const auto& [name, options, parameters] = GetParam();
  EXPECT_EQ(parameter_count(options), parameters);
  EXPECT_EQ(elements_of(build_llama(options)), parameters);
}

INSTANTIATE_TEST_SUITE_P(
    All, PublishedLlama,
    testing::Values(
        Published{"llama_7b", {.layers = 32, .width = 4096, .heads = 32, .context = 2048, .vocabulary = 32000}, 6738415616},
        Published{"llama_65b", {.layers = 80, .width = 8192, .heads = 64, .context = 2048, .vocabulary = 32000}, 65285660672},
        Published{"llama3_8b",
                  {.layers = 32, .width = 4096, .heads = 32, .groups = 8, .context = 8192, .vocabulary = 128256, .ffn = 14336},
                  8030261248},
        Published{"llama3_2_1b",
                  {.layers = 16, .width = 2048, .heads = 32, .groups = 8, .vocabulary = 128256, .ffn = 8192, .tied_embedding = true},
                  1235814400},
        Published{"llama3_1_405b",
                  {.layers = 126, .width = 16384, .heads = 128, .groups = 8, .context = 131072, .vocabulary = 128256, .ffn = 53248},
                  405853388800}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Llama, MarksTheScopesWhereItMayBeCut) {
  const Program program = build_llama(small_llama());
  std::set<std::string> boundaries;
  for (const Region& region : program.regions)
    if (region.boundary && region.parent >= 0) boundaries.insert(region.name);
  EXPECT_EQ(boundaries, (std::set<std::string>{"embedding", "block.0", "block.0.attention", "block.0.mlp", "block.1", "block.1.attention",
                                               "block.1.mlp", "head"}));
}

TEST(Llama, ReadsItsOptions) {
  const LlamaOptions o = llama_options(R"({"layers":3,"width":48,"heads":8,"groups":2,"context":32,"vocabulary":100,"ffn":96,
      "rope_base":5e5,"rms_norm_epsilon":1e-6,"tied_embedding":true})");
  EXPECT_EQ(parameter_count(o),
            parameter_count({.layers = 3, .width = 48, .heads = 8, .groups = 2, .vocabulary = 100, .ffn = 96, .tied_embedding = true}));
  const Program program = build_llama(o);
  int64_t rotated = 0, normed = 0;
  for (const Node& node : program.find(Phase::forward)->graph.nodes) {
    if (node.op == Op::rope && node.attrs.real("base") == 5e5 && node.out[0].shape[1] == 32) ++rotated;
    if (node.op == Op::rms_norm && node.attrs.real("epsilon") == 1e-6) ++normed;
  }
  EXPECT_EQ(rotated, 2 * 3);
  EXPECT_EQ(normed, 2 * 3 + 1);
}

struct RefusedLlama {
  const char* json;
  const char* message;
};
class LlamaRefusals : public testing::TestWithParam<RefusedLlama> {};

TEST_P(LlamaRefusals, SayWhy) {
  EXPECT_EQ(refusal([] { build_builtin("llama", GetParam().json); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, LlamaRefusals,
    testing::Values(
        RefusedLlama{R"({"layers":0})", "llama: layers must be at least 1, got 0"},
        RefusedLlama{R"({"layers":5000})", "llama: layers must be at most 4096, got 5000"},
        RefusedLlama{R"({"width":0})", "llama: width must be at least 1, got 0"},
        RefusedLlama{R"({"heads":-1})", "llama: heads must be at least 1, got -1"},
        RefusedLlama{R"({"context":0})", "llama: context must be at least 1, got 0"},
        RefusedLlama{R"({"vocabulary":0})", "llama: vocabulary must be at least 1, got 0"},
        RefusedLlama{R"({"width":100,"heads":3})",
                     "llama: width must be divisible by heads, got width 100 and heads 3; the nearest valid width is 99"},
        RefusedLlama{R"({"width":12})",
                     "llama: a head's size, width / heads, must be even, because rope rotates pairs; got width 12 and heads 4"},
        RefusedLlama{R"({"groups":3})", "llama: groups must divide heads, or be 0 for as many, got groups 3 and heads 4"},
        RefusedLlama{R"({"groups":8})", "llama: groups must divide heads, or be 0 for as many, got groups 8 and heads 4"},
        RefusedLlama{R"({"groups":-4})", "llama: groups must divide heads, or be 0 for as many, got groups -4 and heads 4"},
        RefusedLlama{R"({"ffn":-1})", "llama: ffn must be at least 1, or 0 for 8/3 of the width, got -1"},
        RefusedLlama{R"({"rope_base":0})", "llama: rope_base must be a number above 0, got 0"},
        RefusedLlama{R"({"rms_norm_epsilon":-1e-5})", "llama: rms_norm_epsilon must be a number above 0, got -1e-05"},
        RefusedLlama{R"({"tied_embedding":1})", "llama: tied_embedding must be true or false, got 1"},
        RefusedLlama{
            R"({"width":4611686018427387904,"heads":1})",
            "llama: these options ask for about 1.0208471e+39 parameters: layers 4, width 4611686018427387904, ffn 0, vocabulary 256; "
            "the limit is 2^53"},
        RefusedLlama{
            R"({"group":2})",
            "llama: option \"group\" is unknown; did you mean groups? There are: layers, width, heads, groups, context, vocabulary, "
            "ffn, rope_base, rms_norm_epsilon, tied_embedding"}));

}  // namespace
}  // namespace st
