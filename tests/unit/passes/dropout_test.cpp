#include "passes/dropout.h"

#include <map>

#include "small_program.h"

namespace st {
namespace {

/// A forward section under construction, over an input "x" [2, 3].
struct Small : SmallProgram {
  Small() : SmallProgram(2) {}
  Value x = b.input("x", DType::f32, {2, 3});

  void output(const std::string& name, Value value) { program.outputs.push_back({name, value}); }
  Op op_of_output(size_t i) const { return forward()[program.outputs.at(i).value.node].op; }
  const Graph& forward() const { return forward_of(program); }
};

std::vector<const Node*> sites_of(const Program& program) { return nodes_of(program, Phase::forward, Op::dropout); }

std::vector<double> rates_of(const Program& program) {
  std::vector<double> rates;
  for (const Node* site : sites_of(program)) rates.push_back(site->attrs.real("rate"));
  return rates;
}

int64_t loads_of_counters(const Program& program) {
  const std::vector<SlotId> counters = {program.slot_named("counters")};
  return std::ranges::count_if(nodes_of(program, Phase::forward, Op::load), [&](const Node* load) { return load->reads == counters; });
}

TEST(SetDropout, EverySiteHasRateSeedAndItsOwnNumberInBackwardToo) {
  Program program = bind(small_gpt(), 2);
  set_dropout(program, 0.1, 42);
  verify(program, "dropout");
  program = with_backward(std::move(program));
  std::map<int64_t, std::map<Phase, int>> sites;
  for (const Section& section : program.sections)
    for (const Node* node : nodes_of(section.graph, Op::dropout)) {
      EXPECT_EQ(node->attrs.real("rate"), 0.1);
      EXPECT_EQ(node->attrs.integer("seed"), 42);
      ++sites[node->attrs.integer("site")][section.phase];
    }
  EXPECT_EQ(sites.size(), 5U);  // one after the embedding, two per block
  for (const auto& [site, phases] : sites) {
    EXPECT_EQ(phases.at(Phase::forward), 1) << site;
    EXPECT_EQ(phases.at(Phase::backward), 1) << site;
  }
}

TEST(SetDropout, ASiteWithARateOfItsOwnKeepsItAndAllTakeTheSeed) {
  Small s;
  s.output("y", s.b.dropout(s.b.dropout(s.b.dropout(s.x), 0.5)));
  set_dropout(s.program, 0.25, 7);
  EXPECT_EQ(rates_of(s.program), (std::vector{0.25, 0.5, 0.25}));
  for (const Node* site : sites_of(s.program)) EXPECT_EQ(site->attrs.integer("seed"), 7);
  EXPECT_EQ(loads_of_counters(s.program), 3);
}

TEST(SetDropout, RateZeroLeavesNeitherASiteNorALoadOfItsCounters) {
  Program program = bind(small_gpt(), 2);
  const auto before = program.sections[0].graph.size();
  set_dropout(program, 0, 42);
  verify(program, "dropout");
  EXPECT_TRUE(sites_of(program).empty());
  EXPECT_EQ(loads_of_counters(program), 0);
  EXPECT_EQ(program.sections[0].graph.size(), before - 2 * 5) << "five sites and what each loads: nothing else is gone";
}

TEST(SetDropout, RateZeroLeavesASiteWithARateOfItsOwnItsNumberAndItsCounters) {
  Small s;
  const Value own = s.b.dropout(s.b(Op::exp, {s.b.dropout(s.x)}), 0.5);
  s.output("y", s.b.dropout(own));
  set_dropout(s.program, 0, 7);
  verify(s.program, "dropout");
  EXPECT_EQ(rates_of(s.program), std::vector{0.5});
  const Node& site = *sites_of(s.program).front();
  EXPECT_EQ(site.attrs.integer("site"), 1) << "masks do not depend on which other sites are on";
  EXPECT_EQ(s.forward()[site.in[0].node].op, Op::exp);
  EXPECT_EQ(loads_of_counters(s.program), 1);
  EXPECT_EQ(s.op_of_output(0), Op::dropout);
}

TEST(SetDropout, OutputsAndLossThatAreASitesValueSurviveItsRemoval) {
  Small s;
  const Value y = s.b(Op::exp, {s.x});
  s.output("twice", s.b.dropout(s.b.dropout(y)));
  s.output("input", s.b.dropout(s.x));
  s.program.loss_sum = s.b.dropout(s.b.sum(y, {}));
  set_dropout(s.program, 0, 7);
  verify(s.program, "dropout");
  EXPECT_TRUE(sites_of(s.program).empty());
  EXPECT_EQ(s.op_of_output(0), Op::exp);
  EXPECT_EQ(s.op_of_output(1), Op::load);
  EXPECT_EQ(s.forward()[s.program.loss_sum.node].op, Op::sum);
}

TEST(SetDropout, LeavesCountersThatAreReadOtherwise) {
  Small s;
  s.output("y", s.b.dropout(s.x));
  s.output("counters", s.b.load(s.program.slot_named("counters")));
  set_dropout(s.program, 0, 7);
  verify(s.program, "dropout");
  EXPECT_EQ(loads_of_counters(s.program), 1);
  EXPECT_EQ(s.op_of_output(1), Op::load);
}

TEST(SetDropout, LeavesAProgramWithoutSitesAsItWas) {
  Small s;
  s.output("y", s.b(Op::exp, {s.x}));
  const auto before = s.forward().size();
  set_dropout(s.program, 0.5, 7);
  EXPECT_EQ(s.forward().size(), before);
  EXPECT_LT(s.program.slot_named("counters"), 0);
}

TEST(RemoveDropout, TakesTheSitesThatTheCallerNames) {
  Program program = bind(small_gpt(), 2);
  remove_dropout(program, [](const Node& site) { return site.attrs.integer("site") % 2 == 1; });
  verify(program, "dropout");
  std::vector<int64_t> left;
  for (const Node* site : sites_of(program)) left.push_back(site->attrs.integer("site"));
  EXPECT_EQ(left, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(loads_of_counters(program), 3);
}

}  // namespace
}  // namespace st
