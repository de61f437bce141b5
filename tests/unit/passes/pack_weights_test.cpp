#include "passes/pack_weights.h"

#include "plan/plan.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

/// A packed layout of 32 bytes more than the weight; none for fewer than `least` columns.
PackingNeed of_columns(int64_t least) {
  return [least](const Program&, const Section& section, const Node& node) -> int64_t {
    EXPECT_EQ(node.op, Op::fused_linear);
    return node.out[0].shape.last() < least ? 0 : section.graph.type(node.in[1]).bytes() + 32;
  };
}

Program packed(int64_t micro_batches, const PackingNeed& need) {
  Program program = training_program(small_gpt(), 2, micro_batches);
  pack_weights(program, micro_batches, need);
  verify(program, "pack_weights");
  return program;
}

TEST(PackWeights, TheFirstMicroBatchPacksEachWeightForEachSideThatIsRead) {
  const Program program = packed(3, of_columns(0));
  const auto packs = nodes_of(program, Op::pack), products = nodes_of(program, Op::fused_linear);
  EXPECT_EQ(packs.size(), 2U * (2 * 4 + 1));  // qkv, projection, expand, contract and the head; forward and backward
  EXPECT_EQ(products.size(), packs.size());
  for (const Node* pack : packs) EXPECT_EQ(pack->when, When::first);
  for (const Node* product : products) EXPECT_TRUE(product->attrs.flag("packed"));
  EXPECT_EQ(count_of(program, Op::linear), 0);
  for (const Node* product : nodes_of(program, Op::matmul)) EXPECT_TRUE(product->attrs.flag("transpose_a")) << "a weight's gradient";
  const Plan plan = make_plan(program, memory_without_workspace(program), in_turn(program, 3));
  int64_t runs = 0;
  for (const Instruction& at : plan.instructions)
    runs += plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op == Op::pack;
  EXPECT_EQ(runs, static_cast<int64_t>(packs.size())) << "once a step";
}

TEST(PackWeights, TheMemoryPlanAndItsExplanationHaveTheBytes) {
  const Program program = packed(2, of_columns(0));
  int64_t bytes = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::packed) bytes += align_up(program.slot(slot.of).type.bytes() + 32);
  EXPECT_GT(bytes, 0);
  const Plan plan = make_plan(program, memory_without_workspace(program), in_turn(program, 2));
  EXPECT_EQ(plan.memory.of(Arena::packed), bytes);
  EXPECT_NE(explain(plan).find(text("packed ", std::string(20 - std::to_string(bytes).size(), ' '), bytes)), std::string::npos)
      << explain(plan);
}

TEST(PackWeights, ChangesNothingWhereNothingIsGained) {
  const auto packs = [](const Program& program) { return count_of(program, Op::pack); };
  EXPECT_EQ(packs(packed(1, of_columns(0))), 0) << "one micro-batch";
  EXPECT_EQ(packs(packed(2, of_columns(1000))), 0) << "read as it lies";
  EXPECT_EQ(packs(packed(2, of_columns(40))), 4) << "what expand makes and what contract's gradient is of";
}

TEST(PackWeights, ProductsWithTheSameWeightAndRowsShareIt) {
  SmallProgram s(1);
  Builder& b = s.b;
  const Value w = b.parameter("w", {6, 6}, {}), x = b.input("x", DType::f32, {4, 6});
  const Value y = b.matmul(b.matmul(x, w), w), z = b.matmul(b.reshape(x, {2, 2, 6}), w);
  s.program.outputs = {{"y", b.matmul(y, w, false, true)}, {"z", b.matmul(b.input("more", DType::f32, {5, 6}), w)}, {"w", z}};
  pack_weights(s.program, 2, of_columns(0));
  verify(s.program, "pack_weights");
  EXPECT_EQ(count_of(s.program, Op::fused_linear), 5);
  EXPECT_EQ(count_of(s.program, Op::pack), 3);  // for 4 rows, those transposed, and for 5 rows
}

}  // namespace
}  // namespace st
