#include "passes/pack_weights.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/verify.h"
#include "models/gpt.h"
#include "passes/memory_plan.h"
#include "plan/plan.h"
#include "random_program.h"

namespace st {
namespace {

/// A layout that takes 32 bytes more than the weight, and none for fewer than `least` columns.
PackingNeed of_columns(int64_t least) {
  return [least](const Program&, const Section& section, const Node& node) -> int64_t {
    EXPECT_EQ(node.op, Op::fused_linear);
    return node.out[0].shape.last() < least ? 0 : section.graph.type(node.in[1]).bytes() + 32;
  };
}

Program packed(int64_t micro_batches, const PackingNeed& need) {
  Program program = training_program(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 2, micro_batches);
  pack_weights(program, micro_batches, need);
  verify(program, "pack_weights");
  return program;
}

std::vector<Node> nodes_of(const Program& program, Op op) {
  std::vector<Node> found;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      if (node.op == op) found.push_back(node);
  return found;
}

TEST(PackWeights, TheFirstMicroBatchPacksEachWeightForEachSideThatIsRead) {
  const Program program = packed(3, of_columns(0));
  const auto packs = nodes_of(program, Op::pack), products = nodes_of(program, Op::fused_linear);
  EXPECT_EQ(packs.size(), 2U * (2 * 4 + 1));  // qkv, projection, expand, contract and the head; forward and backward
  EXPECT_EQ(products.size(), packs.size());
  for (const Node& pack : packs) EXPECT_EQ(pack.when, When::first);
  for (const Node& product : products) EXPECT_TRUE(product.attrs.flag("packed"));
  EXPECT_EQ(nodes_of(program, Op::linear).size(), 0U);
  for (const Node& product : nodes_of(program, Op::matmul)) EXPECT_TRUE(product.attrs.flag("transpose_a")) << "a weight's gradient";
  const Plan plan = make_plan(program, memory_plan(program, [](auto&&...) { return int64_t{0}; }), 3);
  int64_t runs = 0;
  for (const Instruction& at : plan.instructions)
    runs += plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op == Op::pack;
  EXPECT_EQ(runs, static_cast<int64_t>(packs.size())) << "once a step";
}

TEST(PackWeights, TheMemoryPlanAndItsExplanationHaveTheBytes) {
  const Program program = packed(2, of_columns(0));
  int64_t bytes = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::packed) bytes += align_up(program.slots[static_cast<size_t>(slot.of)].type.bytes() + 32);
  EXPECT_GT(bytes, 0);
  const Plan plan = make_plan(program, memory_plan(program, [](auto&&...) { return int64_t{0}; }), 2);
  EXPECT_EQ(plan.memory.of(Arena::packed), bytes);
  EXPECT_NE(explain(plan).find(text("packed ", std::string(20 - std::to_string(bytes).size(), ' '), bytes)), std::string::npos)
      << explain(plan);
}

TEST(PackWeights, ChangesNothingWhereNothingIsGained) {
  const auto size = [](const Program& program) { return nodes_of(program, Op::pack).size(); };
  EXPECT_EQ(size(packed(1, of_columns(0))), 0U) << "one micro-batch";
  EXPECT_EQ(size(packed(2, of_columns(1000))), 0U) << "read as it lies";
  EXPECT_EQ(size(packed(2, of_columns(40))), 4U) << "what expand makes and what contract's gradient is of";
}

TEST(PackWeights, ProductsWithTheSameWeightAndRowsShareIt) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  program.batch = 1;
  Builder b(program, 0);
  const Value w = b.parameter("w", {6, 6}, {}), x = b.input("x", DType::f32, {4, 6});
  const Value y = b.matmul(b.matmul(x, w), w), z = b.matmul(b.reshape(x, {2, 2, 6}), w);
  program.outputs = {{"y", b.matmul(y, w, false, true)}, {"z", b.matmul(b.input("more", DType::f32, {5, 6}), w)}, {"w", z}};
  pack_weights(program, 2, of_columns(0));
  verify(program, "pack_weights");
  EXPECT_EQ(nodes_of(program, Op::fused_linear).size(), 5U);
  EXPECT_EQ(nodes_of(program, Op::pack).size(), 3U);  // for 4 rows, those transposed, and for 5 rows
}

}  // namespace
}  // namespace st
