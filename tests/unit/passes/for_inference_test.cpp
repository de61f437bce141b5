#include "passes/for_inference.h"

#include <optional>
#include <set>

#include "passes/dropout.h"
#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

const std::vector<std::string> kLogits = {"logits"}, kNothing = {};

/// With the model's dropout sites, or with a rate set on them.
Program gpt(std::optional<double> dropout, std::span<const std::string> outputs, bool loss) {
  Program program = bind(small_gpt(), 2);
  if (dropout) set_dropout(program, *dropout, 1);
  for_inference(program, outputs, loss);
  verify(program, "for_inference");
  return program;
}

std::set<std::string> slots_read(const Program& program) {
  std::set<std::string> names;
  for (const Node& node : program.sections.at(0).graph.nodes)
    for (const SlotId slot : node.reads) names.insert(program.slot(slot).name);
  return names;
}

TEST(ForInference, TakesDropoutOut) {
  for (const auto dropout : {std::optional<double>(), std::optional(0.5)}) {
    const Program program = gpt(dropout, kLogits, true);
    EXPECT_EQ(count_of(program, Op::dropout), 0);
    EXPECT_FALSE(slots_read(program).contains("counters"));
  }
}

TEST(ForInference, IsTheSameProgramWithAndWithoutDropout) {
  const Program with = gpt(0.5, kLogits, true), without = gpt(0, kLogits, true);
  ASSERT_EQ(with.sections[0].graph.size(), without.sections[0].graph.size());
  for (int32_t n = 0; n < with.sections[0].graph.size(); ++n) {
    EXPECT_EQ(with.sections[0].graph[n].op, without.sections[0].graph[n].op);
    EXPECT_EQ(with.sections[0].graph[n].in, without.sections[0].graph[n].in);
  }
}

TEST(ForInference, DropsInputsThatNothingNeeds) {
  EXPECT_FALSE(slots_read(gpt({}, kLogits, false)).contains("targets"));
  EXPECT_TRUE(slots_read(gpt({}, kLogits, false)).contains("tokens"));
  EXPECT_TRUE(slots_read(gpt({}, kLogits, true)).contains("targets"));
}

TEST(ForInference, StoresOnlyWhatWasAskedFor) {
  const Program logits = gpt({}, kLogits, false), loss = gpt({}, kNothing, true);
  EXPECT_GE(logits.slot_named("output.logits"), 0);
  EXPECT_LT(logits.slot_named("loss_sum"), 0);
  EXPECT_EQ(count_of(logits, Op::cross_entropy), 0);
  EXPECT_FALSE(logits.loss_sum);
  EXPECT_LT(loss.slot_named("output.logits"), 0);
  EXPECT_GE(loss.slot_named("loss_sum"), 0);
  EXPECT_GE(loss.slot_named("loss_count"), 0);
}

TEST(ForInference, RefusesAnUnknownOutputByName) {
  const std::vector<std::string> outputs = {"logit"};
  EXPECT_TRUE(refuses(Code::not_found, {"\"logit\""}, [&] { gpt({}, outputs, false); }));
}

}  // namespace
}  // namespace st
