#include "passes/accumulate.h"

#include "ir/print.h"
#include "models/mlp.h"
#include "small_program.h"

namespace st {
namespace {

Program differentiated(int64_t micro_batches) {
  return with_backward(bind(build_mlp({.inputs = 3, .hidden = {4}, .outputs = 2, .activation = "relu", .loss = "mse"}), 2), micro_batches);
}

TEST(Accumulate, OneMicroBatchLeavesTheProgramAsItIs) {
  Program program = differentiated(1);
  const std::string before = print(program);
  accumulate(program, 1);
  EXPECT_EQ(print(program), before);
}

TEST(Accumulate, TheFirstMicroBatchWritesAndTheRestAdd) {
  Program program = differentiated(3);
  accumulate(program, 3);
  verify(program, "accumulate");
  for (const Section& section : program.sections)
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      const Node& node = section.graph[n];
      if (node.writes.empty()) {
        EXPECT_EQ(node.when, When::every);
        continue;
      }
      const Slot& slot = slot_of(program, node.writes[0]);
      if (slot.role == Role::stash) {  // belongs to its micro-batch
        EXPECT_TRUE(node.op == Op::store && node.when == When::every) << slot.name;
        continue;
      }
      ASSERT_TRUE(slot.role == Role::gradient || slot.role == Role::report) << slot.name;
      if (node.op == Op::accumulate) {
        EXPECT_EQ(node.when, When::rest);
        const Node& before = section.graph[n - 1];
        EXPECT_TRUE(before.op == Op::store && before.when == When::first && before.writes == node.writes && before.in == node.in);
      } else {
        EXPECT_TRUE(node.op == Op::store && node.when == When::first);
        ASSERT_LT(n + 1, section.graph.size());
        EXPECT_EQ(section.graph[n + 1].op, Op::accumulate);
      }
    }
}

TEST(Accumulate, CarriesTheLossAndTheOutputsAlong) {
  Program program = differentiated(3);
  accumulate(program, 3);
  const Graph& forward = forward_of(program);
  EXPECT_EQ(forward[program.loss_sum.node].op, Op::mse);
  EXPECT_EQ(forward[program.loss_count.node].op, Op::mse);
  EXPECT_EQ(forward[program.outputs.at(0).value.node].op, Op::add);
}

}  // namespace
}  // namespace st
