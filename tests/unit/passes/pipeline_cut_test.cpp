// The parts of a model and what pipeline_cut() and split_backward() leave on each stage.
#include "passes/pipeline_cut.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "ir/verify.h"
#include "passes/autodiff.h"
#include "passes/scale_loss.h"
#include "passes/split_backward.h"
#include "passes/stage_parts.h"
#include "scoped_program.h"
#include "small_program.h"
#include "thrown_error.h"

namespace st {
namespace {

using ::testing::HasSubstr;

Program differentiated(const Program& model) {
  Program program = bind(model, 2);
  scale_loss(program, 1);
  autodiff(program);
  return program;
}

/// Of each stage, by the parts' stages.
std::vector<Program> cut(const Program& whole, const std::vector<int32_t>& stage_of, bool splits = false) {
  std::vector<Program> all;
  const int32_t stages = 1 + *std::ranges::max_element(stage_of);
  for (int32_t stage = 0; stage < stages; ++stage) {
    Program& program = all.emplace_back(whole);
    program.mesh.stage = stages;
    program.stage = stage;
    pipeline_cut(program, {.stage_of = stage_of});
    verify(program, "pipeline_cut");
    if (splits) split_backward(program);
    verify(program, "split_backward");
  }
  return all;
}

const std::vector<std::vector<int32_t>> kPlacements = {{0, 1}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 1, 0}};

/// The types of a link's messages, in the order in which one end's sections run.
std::map<int64_t, std::vector<std::string>> messages(const Program& program, Op op) {
  std::map<int64_t, std::vector<std::string>> all;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) {
      if (node.op != op) continue;
      const Type& type = op == Op::send ? section.graph.type(node.in[0]) : program.slot(node.writes[0]).type;
      all[node.attrs.integer("link")].push_back(text(type.dtype, type.shape, name_of(node.when)));
    }
  return all;
}

TEST(PipelineCut, SendsWhatTheOtherEndReceivesInItsOrder) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Program whole = differentiated(scoped_program(seed, 6));
    for (const std::vector<int32_t>& stage_of : kPlacements)
      for (const bool splits : {false, true}) {
        std::map<int64_t, std::vector<std::string>> sent, received;
        std::vector<Program> stages;
        try {
          stages = cut(whole, stage_of, splits);
        } catch (const Error& error) {
          ASSERT_THAT(error.message(), HasSubstr("would have no parameter")) << "seed " << seed;
          continue;
        }
        for (const Program& stage : stages) {
          EXPECT_EQ(stage.links, stages[0].links);
          for (auto& [link, of] : messages(stage, Op::send)) sent[link] = of;
          for (auto& [link, of] : messages(stage, Op::receive)) received[link] = of;
        }
        EXPECT_EQ(sent, received) << "seed " << seed << ", " << stage_of.size() << " parts";
        EXPECT_EQ(sent.size(), stages[0].links.size());
      }
  }
}

TEST(PipelineCut, GivesEachParameterAndGradientToOneStageAndEachNodeToOnePart) {
  const Program whole = differentiated(small_gpt());
  const std::vector<Program> stages = cut(whole, {0, 1, 1, 0});
  std::map<std::string, int> owners;
  std::map<Op, int64_t> ops, of_whole;
  const auto count = [](const Program& program, std::map<Op, int64_t>& to) {
    for (const Section& section : program.sections)
      for (const Node& node : section.graph.nodes)
        if (node.op == Op::matmul || node.op == Op::attention || node.op == Op::layer_norm || node.op == Op::embedding) ++to[node.op];
  };
  count(whole, of_whole);
  int64_t bytes = 0, all = 0;
  for (const Program& stage : stages) {
    for (const Slot& slot : stage.slots)
      if (slot.role == Role::parameter || slot.role == Role::gradient) {
        owners[slot.name] += is_here(stage, slot) ? 1 : 0;
        bytes += slot.role == Role::parameter ? own_type(stage, slot).bytes() : 0;
      }
    count(stage, ops);
  }
  for (const auto& [name, stages_with_it] : owners) EXPECT_EQ(stages_with_it, 1) << name;
  for (const Slot& slot : whole.slots) all += slot.role == Role::parameter ? slot.type.bytes() : 0;
  EXPECT_EQ(bytes, all);
  EXPECT_EQ(ops, of_whole);
}

TEST(PipelineCut, LeavesTheLossOnTheLastPartsStage) {
  const std::vector<Program> stages = cut(differentiated(small_gpt()), {0, 1, 2});
  EXPECT_FALSE(stages[0].loss_sum);
  EXPECT_TRUE(stages[0].outputs.empty());
  EXPECT_TRUE(stages[2].loss_sum);
  EXPECT_EQ(stages[2].outputs.at(0).name, "logits");
}

TEST(SplitBackward, LeavesToTheSecondHalfWhatServesOneGradientAlone) {
  for (const Program& stage : cut(differentiated(small_gpt()), {0, 1}, true)) {
    const Section& input = *stage.find(Phase::backward_input);
    const Section& weight = *stage.find(Phase::backward_weight);
    const auto count = [](const Section& section, auto&& is_one) { return std::ranges::count_if(section.graph.nodes, is_one); };
    const auto is_product = [](const Node& node) { return node.op == Op::matmul; };
    // Of each linear layer one product makes the input's gradient and one the weight's.
    EXPECT_EQ(count(input, is_product), count(weight, is_product));
    EXPECT_EQ(count(weight, [](const Node& node) { return node.op == Op::send || node.op == Op::attention_backward; }), 0);
  }
}

// --- parts

/// Outermost scopes with a product of these widths each.
Program scopes_of(const std::vector<int64_t>& widths) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  Value x = b.input("x", DType::f32, {kBatch, 4});
  int i = 0;
  for (const int64_t width : widths) {
    b.enter(text("layer.", i++));
    x = b.matmul(x, b.parameter("weight", {4, width}, {}));
    x = b.matmul(x, b.parameter("back", {width, 4}, {}));
    b.leave();
  }
  const auto loss = b.append(Op::mse, {x, b.input("y", DType::f32, {kBatch, 4})});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  return bind(program, 8);
}

/// Scopes by part: "0 1,2 3".
std::string parts_text(const Program& program, std::span<const int32_t> stage_of, std::string_view starts = "") {
  const std::vector<int32_t> of_node = parts_of_forward(program, stage_of, starts);
  std::vector<std::set<RegionId>> scopes(stage_of.size());
  for (size_t n = 0; n < of_node.size(); ++n) {
    const Node& node = program.sections[0].graph[static_cast<int32_t>(n)];
    if (node.op == Op::matmul) scopes[static_cast<size_t>(of_node[n])].insert(node.region);
  }
  std::string out;
  for (const auto& of_part : scopes) {
    out += out.empty() ? "" : " ";
    for (const RegionId scope : of_part) out += text(scope == *of_part.begin() ? "" : ",", scope - 1);
  }
  return out;
}

/// Each on a stage of its own.
std::vector<int32_t> stages(int32_t parts) {
  std::vector<int32_t> all(static_cast<size_t>(parts));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(StageParts, AreOfEqualCostOrAsGiven) {
  EXPECT_EQ(parts_text(scopes_of({160, 160, 160, 160}), stages(2)), "0,1 2,3");
  EXPECT_EQ(parts_text(scopes_of({480, 160, 160, 160}), stages(2)), "0 1,2,3");
  EXPECT_EQ(parts_text(scopes_of({160, 160, 160, 480}), stages(2)), "0,1,2 3");
  EXPECT_EQ(parts_text(scopes_of({160, 160, 160}), stages(3)), "0 1 2");
  EXPECT_EQ(parts_text(scopes_of({160, 160, 160, 160}), stages(2), "layer.3"), "0,1,2 3");
  EXPECT_EQ(parts_text(scopes_of({160, 160, 160, 160}), stages(3), "layer.1, layer.2"), "0 1 2,3");
}

/// Scopes of each stage: "3 3".
std::string scopes_of_stages(const Program& program, std::span<const int32_t> stage_of) {
  std::vector<std::set<RegionId>> scopes(stage_of.size());
  const std::vector<int32_t> part_of = parts_of_forward(program, stage_of, "");
  for (size_t n = 0; n < part_of.size(); ++n) {
    const Node& node = program.sections[0].graph[static_cast<int32_t>(n)];
    if (node.op == Op::matmul) scopes[static_cast<size_t>(stage_of[static_cast<size_t>(part_of[n])])].insert(node.region);
  }
  std::string out;
  for (const auto& of_stage : scopes)
    if (!of_stage.empty()) out += text(out.empty() ? "" : " ", of_stage.size());
  return out;
}

/// 16 parts of which the most expensive one is cheapest have up to 4 scopes, a stage up to 8. Parts go down and back (zb-v), or around.
TEST(StageParts, OfOneStageAreBalancedTogether) {
  const Program fifty = scopes_of(std::vector<int64_t>(50, 160));
  for (const bool is_v : {true, false}) {
    std::vector<int32_t> stage_of;
    for (int32_t part = 0; part < 16; ++part) stage_of.push_back(part < 8 ? part : is_v ? 15 - part : part - 8);
    const std::string scopes = scopes_of_stages(fifty, stage_of);
    EXPECT_EQ(std::ranges::count(scopes, '7'), 2) << scopes;  // 50 = 2 x 7 + 6 x 6
    EXPECT_EQ(std::ranges::count(scopes, '6'), 6) << scopes;
  }
  // Stage 0 has parts 0 and 3, and the expensive scope: it gets two scopes less than stage 1.
  EXPECT_EQ(scopes_of_stages(scopes_of({480, 160, 160, 160, 160, 160, 160, 160}), std::vector<int32_t>{0, 1, 1, 0}), "3 5");
}

std::string refusal(const std::function<void()>& call) { return error_of(call).message(); }

TEST(StageParts, RefuseWhatCannotBeCut) {
  const Program program = scopes_of({16, 16, 16});
  EXPECT_THAT(refusal([&] { parts_of_forward(program, stages(4), ""); }),
              HasSubstr("the model has 3 outermost scopes (layer.0, layer.1, layer.2), too few for 4 parts"));
  EXPECT_THAT(refusal([&] { parts_of_forward(program, stages(2), "layer.7"); }), HasSubstr("stage_starts has \"layer.7\", which is not"));
  EXPECT_THAT(refusal([&] { parts_of_forward(program, stages(3), "layer.2,layer.1"); }),
              HasSubstr("\"layer.1\", which is not an outermost scope after"));
  EXPECT_THAT(refusal([&] { parts_of_forward(program, stages(3), "layer.2"); }), HasSubstr("names 1 scopes, but 3 parts have 2 starts"));
}

TEST(StageParts, NeedAParameterOnEachStage) {
  Program model;
  model.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(model, 0);
  Value x = b.input("x", DType::f32, {kBatch, 4});
  b.enter("layer");
  x = b.matmul(x, b.parameter("weight", {4, 4}, {}));
  b.leave();
  b.enter("plain");
  x = b(Op::gelu, {x});
  b.leave();
  const auto loss = b.append(Op::mse, {x, b.input("y", DType::f32, {kBatch, 4})});
  model.loss_sum = loss[0];
  model.loss_count = loss[1];
  EXPECT_THAT(refusal([&] { cut(differentiated(model), {0, 1}); }), HasSubstr("stage 1 of 2 would have no parameter"));
}

}  // namespace
}  // namespace st
