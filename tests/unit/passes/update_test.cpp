#include "passes/update.h"

#include <set>

#include "base/error.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/clip.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

TEST(Update, EveryParameterWithAGradientHasOneOptimizerNodeAndItsMoments) {
  const Program program = training_program(random_program(5, 30), 3, 1);
  verify(program, "update");
  int64_t gradients = 0, updates = 0;
  for (const Slot& slot : program.slots) gradients += slot.role == Role::gradient && slot.name.find(".use") == std::string::npos;
  for (const Node* node : nodes_of(program, Phase::update, Op::adamw)) {
    ++updates;
    ASSERT_EQ(node->writes.size(), 3U);
    const Slot& parameter = slot_of(program, node->writes[0]);
    EXPECT_EQ(parameter.role, Role::parameter);
    for (size_t m = 1; m < 3; ++m) {
      const Slot& moment = slot_of(program, node->writes[m]);
      EXPECT_EQ(moment.name, text("moment", m, ".", parameter.name));
      EXPECT_EQ(moment.role, Role::optimizer);
      EXPECT_EQ(moment.type, parameter.type);
      EXPECT_EQ(moment.of, node->writes[0]);
    }
  }
  EXPECT_EQ(updates, gradients);
  EXPECT_GT(updates, 0);
}

// A copy that each micro-batch makes, as in a short micro-batch's plan, is not written by the update.
TEST(Update, LeavesTheWorkingCopiesThatAStepMakesOnce) {
  for (const When when : {When::first, When::every}) {
    Program program = bind(small_gpt(), 2);
    autocast(program, DType::bf16, when);
    program = with_backward(std::move(program), 2);
    accumulate(program, 2);
    clip(program, 1);
    update(program, [](const Slot&, bool) { return OptimizerChoice{}; });
    verify(program, "update");
    std::set<SlotId> copies, left;
    for (size_t slot = 0; slot < program.slots.size(); ++slot)
      if (program.slots[slot].role == Role::working) copies.insert(static_cast<SlotId>(slot));
    for (const Node* node : nodes_of(program, Phase::update, Op::adamw))
      if (node->writes.size() == 4) left.insert(node->writes[3]);
    EXPECT_FALSE(copies.empty());
    EXPECT_EQ(left, when == When::first ? copies : std::set<SlotId>());
  }
}

TEST(Update, AParameterWithoutAGradientIsLeftAlone) {
  Program model = random_program(5, 10);
  Builder(model, 0).parameter("unused", {4}, {.kind = Init::ones, .values = {}});
  const Program program = training_program(model, 3, 1);
  EXPECT_LT(program.slot_named("moment1.unused"), 0);
  const SlotId unused = program.slot_named("unused");
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      for (const SlotId slot : node.writes) EXPECT_NE(slot, unused);
}

TEST(Update, NeedsClipBefore) {
  Program program = with_backward(bind(random_program(5, 10), 3));
  EXPECT_THROW(update(program, [](const Slot&, bool) { return OptimizerChoice{}; }), Error);
}

TEST(Update, EachParameterIsUpdatedByWhatIsChosenForIt) {
  Program program = with_backward(bind(random_program(5, 30), 3));
  clip(program, 1);
  int parameters = 0;
  update(program, [&](const Slot&, bool) {
    if (parameters++ == 0) return OptimizerChoice{.op = Op::sgd, .attrs = {{"momentum", 0.5}}};
    return OptimizerChoice{.op = Op::lion, .attrs = {{"lr_scale", 0.25}}};
  });
  verify(program, "update");
  const auto sgd = nodes_of(program, Phase::update, Op::sgd), lion = nodes_of(program, Phase::update, Op::lion);
  ASSERT_EQ(sgd.size(), 1U);
  EXPECT_TRUE(slot_of(program, sgd[0]->writes[1]).name.starts_with("momentum."));
  EXPECT_EQ(std::ssize(lion), parameters - 1);
  for (const Node* node : lion) EXPECT_EQ(node->attrs.real("lr_scale"), 0.25);
}

}  // namespace
}  // namespace st
