// A difference in run, kernels, library or plan is an error before any other collective: equal on all ranks, with both values.
#include "team/rank_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "../../equivalence/rank_group.h"
#include "base/error.h"
#include "recipe/kernel_needs_of.h"
#include "training.h"

namespace st {
namespace {

struct RankRun {
  Recipe recipe;
  RunIdentity identity;
  Plan plan;
};

/// One of three ranks at ZeRO-2.
RankRun run_of(int rank, const char* bucket = "20000") {
  Training training;
  training.recipe.ranks = 3;
  training.recipe.zero = 2;
  training.recipe.micro_batches = 3;
  training.recipe.device = "reference";
  const auto model = training.model();
  Recipe recipe = training.recipe;
  recipe.set("bucket", bucket);
  PlanOptions options;
  options.rank = rank;
  RunIdentity identity;
  identity.kernels = "cpu avx512";
  return {training.recipe, identity,
          plan_training(model->program(), recipe, kernel_needs(profile_of(model->context().backend(), 1)), options)};
}

/// Rank 2 has the facts `odd`, the others those of a normal run.
void expect_refused(const std::vector<RankFact>& odd, std::initializer_list<std::string> words) {
  each_of_group(3, [&](int rank, Communicator& own) {
    const RankRun run = run_of(rank);
    try {
      require_agreement(own, rank == 2 ? odd : run_facts(run.recipe, run.identity, run.plan));
      ADD_FAILURE() << "rank " << rank << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::rank_mismatch);
      EXPECT_EQ(error.place.rank, 2);
      for (const std::string& word : words) EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
    }
    own.barrier("the group is whole");
  });
}

std::vector<RankFact> facts_with(std::string_view name, const std::string& value) {
  const RankRun run = run_of(2);
  std::vector<RankFact> facts = run_facts(run.recipe, run.identity, run.plan);
  for (RankFact& fact : facts)
    if (fact.name == name) fact.value = value;
  return facts;
}

TEST(RankAgreement, IsThatOfRanksWithPiecesOfTheirOwn) {
  each_of_group(3, [](int rank, Communicator& own) {
    const RankRun run = run_of(rank);
    require_agreement(own, run_facts(run.recipe, run.identity, run.plan));
  });
}

TEST(RankAgreement, IsNotThatOfAnotherLibraryOrKernelClass) {
  const RankRun run = run_of(0);
  const std::string version = run_facts(run.recipe, run.identity, run.plan).front().value;
  expect_refused(facts_with("library version", "0.0.9"), {"has library version 0.0.9, rank 0 has " + version});
  expect_refused(facts_with("kernels", "cpu avx2"), {"has kernels cpu avx2, rank 0 has cpu avx512"});
}

// A rank whose library orders or buckets collectives differently, with everything else equal.
TEST(RankAgreement, IsNotThatOfOtherCollectives) {
  const RankRun other = run_of(2, "4096");
  const auto told = [](const RankRun& run) {
    const std::vector<RankFact> facts = run_facts(run.recipe, run.identity, run.plan);
    return std::ranges::find(facts, "collectives of a step", &RankFact::name)->value;
  };
  expect_refused(run_facts(other.recipe, other.identity, other.plan),
                 {"has collectives of a step " + told(other), "rank 0 has " + told(run_of(0))});
}

}  // namespace
}  // namespace st
