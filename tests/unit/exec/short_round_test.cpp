// A step whose last round has rows on its first rank alone: the ranks whose terms each collective adds.
#include <gtest/gtest.h>

#include "ir/attrs.h"
#include "ir/build.h"
#include "program_run.h"
#include "rank_group.h"

namespace st {
namespace {

constexpr int kThreeRanks = 3;
constexpr int64_t kTwoRounds = 2;
constexpr Contributors kAllRanks{.in_round = kThreeRanks, .in_step = kThreeRanks}, kFirstRank{.in_round = 1, .in_step = kThreeRanks};

/// The sum over the ranks of a term: in each round, and once per step.
Program program_of_sums() {
  Program program;
  program.sections.emplace_back();
  program.mesh.data = kThreeRanks;
  Builder b(program, 0);
  const Type number{.dtype = DType::f64, .shape = {}, .layout = {}};
  const Value term = b.load(program.add_slot({.name = "term", .type = number, .role = Role::control, .init = {}}));
  const auto sum = [&](const char* name, bool adds, When when) {
    const SlotId slot = program.add_slot({.name = name, .type = number, .role = Role::report, .init = {}});
    b.graph().nodes.push_back({.op = Op::rank_sums,
                               .in = {term},
                               .out = {},
                               .reads = {},
                               .writes = {slot},
                               .attrs = make_attrs(Op::rank_sums, {{"adds", adds}}),
                               .when = when});
  };
  sum("of_rounds", true, When::every);
  sum("of_step", false, When::last);
  return program;
}

TEST(ShortRound, AddsTheTermsOfItsRanksAndOnceThoseOfTheStep) {
  const Program program = program_of_sums();
  each_of_group(kThreeRanks, [&](int rank, Communicator& own) {
    const auto backend = make_reference_backend();
    Storage storage(*backend);
    Workers workers(1);
    ExchangeQueue queue(own);
    Executor executor(plan_for_reference(program, kTwoRounds), storage, workers, nullptr, &queue);
    const auto number = [&](const char* name) -> double& { return *as<double>(executor.slot(program.slot_named(name))); };
    number("term") = rank + 1;
    number("of_rounds") = 0;
    Executor::Cursor cursor{.end = rank == 0 ? kTwoRounds : 1};
    const auto prepare = [&](int64_t round) {
      executor.set_contributors(round == 0 ? kAllRanks : kFirstRank);
      return true;
    };
    EXPECT_TRUE(executor.run_until(cursor, executor.end(), Executor::kNoDeadline, prepare));
    if (rank > 0) executor.run_without_rows(1, kFirstRank, Executor::RunByAll::both);
    EXPECT_EQ(number("of_rounds"), (1 + 2 + 3) + 1);
    EXPECT_EQ(number("of_step"), 1 + 2 + 3);
  });
}

}  // namespace
}  // namespace st
