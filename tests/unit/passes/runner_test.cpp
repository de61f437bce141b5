#include "passes/runner.h"

#include "ir/build.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "random_program.h"
#include "refusal.h"

namespace st {
namespace {

void add_a_slot(Program& program) { program.add_slot({.name = "more", .type = {}, .role = Role::report, .init = {}}); }

void break_a_type(Program& program) { program.sections[0].graph.nodes.back().out[0].shape.push_back(3); }
void break_an_edge(Program& program) { program.sections[0].graph.nodes.back().in[0].node = 1000; }

TEST(Runner, VerifiesAfterEachPassWherePassesArePrinted) {
  Program program = bind(random_program(1, 5), 2);
  Runner runner(program, {}, [](const std::string&, const std::string&) {});
  runner.run("harmless", add_a_slot);
  EXPECT_TRUE(refuses(Code::internal, {"after vandal"}, [&] { runner.run("vandal", break_a_type); }));
}

TEST(Runner, LetsNoPassReadThroughAnIdThatLeadsNowhere) {
  Program program = bind(random_program(1, 5), 2);
  Runner runner(program, {}, {});
  EXPECT_TRUE(refuses(Code::internal, {"after vandal", "%1000 does not come before it"}, [&] { runner.run("vandal", break_an_edge); }));
}

TEST(Runner, FindsThePassThatBroke) {
  const Pass passes[] = {{"harmless", true, add_a_slot}, {"vandal", true, break_a_type}, {"also_harmless", true, [](Program&) {}}};
  std::vector<bool> runs;
  const auto run = [&](bool verifies_each) {
    runs.push_back(verifies_each);
    Program program = bind(random_program(1, 5), 2);
    Runner runner(program, {}, {});
    if (verifies_each) runner.verify_each();
    runner.run(passes);
    verify(program, "the last pass");
    return program;
  };
  EXPECT_TRUE(refuses(Code::internal, {"after vandal"}, [&] { named(run); }));
  EXPECT_EQ(runs, (std::vector<bool>{false, true}));
}

TEST(Runner, RunsPassesOnceWhereNoneBreaks) {
  int runs = 0;
  const auto run = [&](bool verifies_each) {
    EXPECT_FALSE(verifies_each);
    return ++runs;
  };
  EXPECT_EQ(named(run), 1);
}

TEST(Runner, RefusesAWrongRecipeInItsOwnWords) {
  std::vector<bool> runs;
  const auto refused = [&](bool verifies_each) -> int {
    runs.push_back(verifies_each);
    fail(Code::invalid_argument, "the recipe is wrong");
  };
  EXPECT_TRUE(refuses(Code::invalid_argument, {"the recipe is wrong"}, [&] { named(refused); }));
  EXPECT_EQ(runs, (std::vector<bool>{false, true}));
  const auto too_large = [&](bool) -> int { fail(Code::out_of_memory, "no choice fits"); };
  EXPECT_TRUE(refuses(Code::out_of_memory, {"no choice fits"}, [&] { named(too_large); }));
}

TEST(Runner, SkipsByName) {
  Program program = bind(random_program(1, 5), 2);
  Runner runner(program, {"second"}, {});
  int calls = 0;
  for (const char* name : {"first", "second", "third"}) runner.run(name, [&](Program&) { ++calls; });
  EXPECT_EQ(calls, 2);
  ASSERT_EQ(runner.records().size(), 3U);
  for (const PassRecord& record : runner.records()) EXPECT_EQ(record.skipped, record.name == "second");
}

TEST(Runner, RecordsNamesTimesAndNodes) {
  Program program = bind(random_program(1, 5), 2);
  const int32_t before = program.sections[0].graph.size();
  Runner runner(program, {}, {});
  runner.run("grow", [](Program& p) { Builder(p, 0).fill({2}, 1); });
  EXPECT_EQ(runner.records()[0].name, "grow");
  EXPECT_EQ(runner.records()[0].nodes, before + 1);
  EXPECT_GT(runner.records()[0].seconds, 0);
}

TEST(Runner, PrintsWhatEachPassLeft) {
  Program program = bind(random_program(1, 5), 2);
  std::vector<std::pair<std::string, std::string>> printed;
  Runner runner(program, {"skipped"}, [&](const std::string& pass, const std::string& text) { printed.emplace_back(pass, text); });
  runner.run("add", add_a_slot);
  runner.run("skipped", add_a_slot);
  ASSERT_EQ(printed.size(), 1U);
  EXPECT_EQ(printed[0].first, "add");
  EXPECT_EQ(printed[0].second, print(program));
  EXPECT_NE(printed[0].second.find("more"), std::string::npos);
}

}  // namespace
}  // namespace st
