#include "models/gpt.h"

#include <cmath>
#include <map>
#include <set>

#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

GptOptions small() { return {.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}; }

const Graph& forward(const Program& program) { return program.find(Phase::forward)->graph; }

std::vector<const Node*> nodes_of(const Program& program, Op op) {
  std::vector<const Node*> found;
  for (const Node& node : forward(program).nodes)
    if (node.op == op) found.push_back(&node);
  return found;
}

std::string region_of(const Program& program, const Node& node) { return program.regions[static_cast<size_t>(node.region)].name; }

TEST(Gpt, IsVerifiedForEveryBatch) {
  const Program program = build_gpt(small());
  EXPECT_NO_THROW(verify(program, "build_gpt"));
  for (const int64_t batch : {1, 3, 8}) {
    const Program bound = bind(program, batch);
    EXPECT_NO_THROW(verify(bound, "bind"));
    ASSERT_EQ(bound.outputs.size(), 1U);
    EXPECT_EQ(bound.outputs[0].name, "logits");
    EXPECT_EQ(forward(bound).type(bound.outputs[0].value).shape, (Shape{batch, 5, 17}));
    EXPECT_EQ(forward(bound).type(bound.loss_sum).shape, Shape{});
  }
}

TEST(Gpt, HasTheParametersOfGpt2) {
  // 124,439,808 is the published size of GPT-2 small.
  EXPECT_EQ(parameter_count(GptOptions{.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257}), 124439808);

  const Program program = build_gpt(small());
  int64_t elements = 0;
  std::map<std::string, Slot> parameters;
  for (const Slot& slot : program.slots) {
    if (slot.role != Role::parameter) continue;
    elements += slot.type.shape.elements();
    parameters[slot.name] = slot;
  }
  EXPECT_EQ(elements, parameter_count(small()));
  EXPECT_EQ(parameters.size(), 4U + 2 * 12);

  const double residual = 0.02 / std::sqrt(4.0);
  const auto expect = [&](const std::string& name, const Shape& shape, Init kind, double scale) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    EXPECT_EQ(parameters[name].type.shape, shape) << name;
    EXPECT_EQ(parameters[name].init.kind, kind) << name;
    if (kind != Init::normal) return;
    EXPECT_DOUBLE_EQ(parameters[name].init.scale, scale) << name;
  };
  expect("token_embedding.weight", {17, 12}, Init::normal, 0.02);
  expect("position_embedding.weight", {5, 12}, Init::normal, 0.02);
  expect("final_norm.gamma", {12}, Init::ones, 1);
  expect("final_norm.beta", {12}, Init::zeros, 1);
  for (const std::string block : {"block.0.", "block.1."}) {
    expect(block + "attention_norm.gamma", {12}, Init::ones, 1);
    expect(block + "attention_norm.beta", {12}, Init::zeros, 1);
    expect(block + "attention.qkv.weight", {12, 36}, Init::normal, 0.02);
    expect(block + "attention.qkv.bias", {36}, Init::zeros, 1);
    expect(block + "attention.projection.weight", {12, 12}, Init::normal, residual);
    expect(block + "attention.projection.bias", {12}, Init::zeros, 1);
    expect(block + "mlp_norm.gamma", {12}, Init::ones, 1);
    expect(block + "mlp_norm.beta", {12}, Init::zeros, 1);
    expect(block + "mlp.expand.weight", {12, 48}, Init::normal, 0.02);
    expect(block + "mlp.expand.bias", {48}, Init::zeros, 1);
    expect(block + "mlp.contract.weight", {48, 12}, Init::normal, residual);
    expect(block + "mlp.contract.bias", {12}, Init::zeros, 1);
  }
}

TEST(Gpt, MarksTheScopesWhereItMayBeCut) {
  const Program program = build_gpt(small());
  std::set<std::string> boundaries;
  for (const Region& region : program.regions)
    if (region.boundary && region.parent >= 0) boundaries.insert(region.name);
  EXPECT_EQ(boundaries, (std::set<std::string>{"embedding", "block.0", "block.0.attention", "block.0.mlp", "block.1", "block.1.attention",
                                               "block.1.mlp", "head"}));
  for (const Node* node : nodes_of(program, Op::attention)) EXPECT_TRUE(region_of(program, *node).ends_with(".attention"));
  for (const Node* node : nodes_of(program, Op::gelu)) EXPECT_TRUE(region_of(program, *node).ends_with(".mlp"));
  EXPECT_EQ(region_of(program, *nodes_of(program, Op::cross_entropy)[0]), "head");
}

TEST(Gpt, LoadsTheTiedWeightInEachScopeThatUsesIt) {
  const Program program = build_gpt(small());
  const SlotId tied = program.slot_named("token_embedding.weight");
  std::vector<std::string> scopes;
  for (const Node* node : nodes_of(program, Op::load))
    if (node->reads == std::vector<SlotId>{tied}) scopes.push_back(region_of(program, *node));
  EXPECT_EQ(scopes, (std::vector<std::string>{"embedding", "head"}));
}

TEST(Gpt, HasNumberedDropoutSitesThatLeaveTheRateToTheRecipe) {
  const Program program = build_gpt(small());
  const auto drops = nodes_of(program, Op::dropout);
  ASSERT_EQ(drops.size(), 1U + 2 * 2);
  for (size_t i = 0; i < drops.size(); ++i) {
    EXPECT_EQ(drops[i]->attrs.integer("site"), static_cast<int64_t>(i));
    EXPECT_EQ(drops[i]->attrs.real("rate"), 0);
  }
  // A sample is a whole sequence: its mask does not depend on its position in the micro-batch.
  const Program bound = bind(program, 3);
  for (const Node* node : nodes_of(bound, Op::dropout)) EXPECT_EQ(node->attrs.integer("sample_elements"), 5 * 12);
}

TEST(Gpt, TakesActivationEpsilonAndScalesOfHuggingFace) {
  GptOptions options = small();
  options.activation = "gelu";
  options.layer_norm_epsilon = 1e-3;
  options.scale_attn_by_inverse_layer_idx = true;
  const Program scaled = build_gpt(options);
  EXPECT_EQ(nodes_of(scaled, Op::gelu)[0]->attrs.word("approximate"), "erf");
  for (const Node* node : nodes_of(scaled, Op::layer_norm)) EXPECT_EQ(node->attrs.real("epsilon"), 1e-3);
  const auto attention = nodes_of(scaled, Op::attention);
  EXPECT_DOUBLE_EQ(attention[0]->attrs.real("scale"), 1 / std::sqrt(4.0));
  EXPECT_DOUBLE_EQ(attention[1]->attrs.real("scale"), 1 / std::sqrt(4.0) / 2);
  options.activation = "relu";
  options.scale_attn_weights = false;
  const Program plain = build_gpt(options);
  EXPECT_EQ(nodes_of(plain, Op::relu).size(), 2U);
  EXPECT_DOUBLE_EQ(nodes_of(plain, Op::attention)[1]->attrs.real("scale"), 0.5);
}

TEST(Gpt, RefusesWhatCannotBeBuiltAndSaysWhy) {
  const auto with = [](auto change) {
    GptOptions options = small();
    change(options);
    return refusal([&] { check_options(options); });
  };
  EXPECT_NO_THROW(check_options(small()));
  EXPECT_EQ(with([](auto& o) { o.width = 100, o.heads = 3; }),
            "gpt: width must be divisible by heads, got width 100 and heads 3; the nearest valid width is 99");
  EXPECT_EQ(with([](auto& o) { o.width = 1, o.heads = 3; }),
            "gpt: width must be divisible by heads, got width 1 and heads 3; the nearest valid width is 3");
  EXPECT_EQ(with([](auto& o) { o.layers = 0; }), "gpt: layers must be at least 1, got 0");
  EXPECT_EQ(with([](auto& o) { o.layers = 1000000; }), "gpt: layers must be at most 4096, got 1000000");
  EXPECT_EQ(with([](auto& o) { o.context = -8; }), "gpt: context must be at least 1, got -8");
  EXPECT_TRUE(says(with([](auto& o) { o.heads = 0; }), {"heads"}));
  EXPECT_TRUE(says(with([](auto& o) { o.width = 0; }), {"width"}));
  EXPECT_TRUE(says(with([](auto& o) { o.vocabulary = 0; }), {"vocabulary"}));
  EXPECT_TRUE(says(with([](auto& o) { o.vocabulary = int64_t{1} << 40; }), {"vocabulary"}));
  // Sizes that overflow are an error, not a small model.
  EXPECT_THROW(parameter_count(GptOptions{.layers = 4096, .width = int64_t{1} << 40, .heads = 1, .context = 1, .vocabulary = 1}), Error);
  EXPECT_THROW(build_gpt({.layers = 1, .width = int64_t{1} << 62, .heads = 1, .context = 1, .vocabulary = 4}), Error);
}

}  // namespace
}  // namespace st
