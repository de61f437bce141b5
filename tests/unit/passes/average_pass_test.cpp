#include "passes/average.h"

#include "base/error.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

std::vector<std::string> averaged(const Program& program) {
  std::vector<std::string> names;
  for (const Node* node : nodes_of(program, Phase::update, Op::average)) names.push_back(slot_of(program, node->writes[0]).name);
  return names;
}

/// A step of a model with a parameter "unused", which the step does not update.
Program step_with_an_unused_parameter() {
  Program model = random_program(5, 30);
  Builder(model, 0).parameter("unused", {4}, {.kind = Init::ones, .values = {}});
  return training_program(model, 3, 1);
}

TEST(Average, FollowsEachUpdatedParameterAndChangesNothingElse) {
  const Program before = step_with_an_unused_parameter();
  Program program = before;
  average(program, 0.75);
  verify(program, "average");
  std::vector<std::string> updated;
  for (const Slot& slot : before.slots)
    if (slot.role == Role::parameter && before.slot_named("gradient." + slot.name) >= 0) updated.push_back("average." + slot.name);
  ASSERT_GT(updated.size(), 1U);
  EXPECT_EQ(averaged(program), updated);

  const std::vector<Node>&old = before.find(Phase::update)->graph.nodes, &now = program.find(Phase::update)->graph.nodes;
  const auto last_update = std::ranges::find_if(old.rbegin(), old.rend(), [](const Node& node) { return node.op == Op::adamw; });
  ASSERT_NE(last_update, old.rend());
  for (size_t n = 0; n < now.size(); ++n) {
    if (now[n].op != Op::average) continue;
    EXPECT_GT(n, static_cast<size_t>(old.rend() - last_update) - 1) << "the weights of this update, not of the last one";
    EXPECT_EQ(now[n].attrs.real("decay"), 0.75);
    const Node& load = now[static_cast<size_t>(now[n].in[0].node)];
    const Slot& slot = slot_of(program, now[n].writes[0]);
    EXPECT_EQ(load.reads[0], slot.of);
    EXPECT_EQ(slot.role, Role::optimizer);
    EXPECT_EQ(slot.type, slot_of(program, slot.of).type);
  }
}

// A step on the host's loss may leave out a parameter that another step trains; it still updates the parameter's average.
TEST(Average, GoesOnWithAKeptAverageOfWhatThisProgramDoesNotUpdate) {
  Program program = step_with_an_unused_parameter();
  const SlotId unused = program.slot_named("unused");
  const SlotId kept = program.add_slot({.name = "average.unused",
                                        .type = {.dtype = DType::f32, .shape = {4}, .layout = {}},
                                        .role = Role::optimizer,
                                        .init = {},
                                        .of = unused});
  average(program, 0.75);
  verify(program, "average");
  EXPECT_EQ(std::ranges::count(averaged(program), "average.unused"), 1);
  EXPECT_EQ(program.slot_named("average.unused"), kept);
}

TEST(Average, NeedsUpdateBefore) {
  Program program = bind(random_program(5, 10), 3);
  EXPECT_THROW(average(program, 0.5), Error);
}

}  // namespace
}  // namespace st
