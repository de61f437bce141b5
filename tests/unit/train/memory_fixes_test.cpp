// A step that does not fit is refused with changes of the recipe that fit, and with what they save.
#include "recipe/memory_fixes.h"

#include <gtest/gtest.h>

#include "../../equivalence/rank_group.h"
#include "base/text.h"
#include "refusal.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

std::vector<std::string> texts_of(const std::vector<MemoryFix>& fixes) {
  std::vector<std::string> all;
  for (const MemoryFix& fix : fixes) all.push_back(text_of(fix.changes) + (fix.fits ? "" : " (too large)"));
  return all;
}

/// Bytes of an imaginary step.
int64_t bytes_with(const Recipe& recipe) {
  check(recipe.recompute != "full", "this model has no recompute full");
  require(recipe.offload == "none", Code::unsupported, "nor offload");
  const int64_t kept = recipe.recompute == "none" ? 500 : recipe.recompute == "attention" ? 400 : 100;
  return 100 + kept * recipe.batch + (recipe.precision == "fp32" ? 1000 : 0);
}

TEST(MemoryFixes, AreTheSingleChangesThatFitWithThoseOfOtherResultsLast) {
  const Recipe recipe{.batch = 2};
  EXPECT_EQ(texts_of(memory_fixes(recipe, 2100, 1900, bytes_with)),
            (std::vector<std::string>{"recompute attention", "recompute blocks", "batch 2 -> 1, accumulate 1 -> 2", "precision bf16"}));
  const auto two = memory_fixes(recipe, 2100, 1500, bytes_with, 2);
  EXPECT_EQ(texts_of(two), (std::vector<std::string>{"recompute blocks", "precision bf16"}));
  EXPECT_EQ(two[0].saved, 800);
  EXPECT_EQ(text_of(two, 1500),
            ". Changes of the recipe that fit: recompute blocks: -800 B; precision bf16: -1000 B (another training result). "
            "`scaletrain plan` and st_plan_create also say what they cost in time");
}

TEST(MemoryFixes, AreSeveralChangesIfNoSingleOneThatKeepsTheResultsFits) {
  const Recipe recipe{.batch = 4};
  EXPECT_EQ(texts_of(memory_fixes(recipe, 3100, 1300, bytes_with)),
            (std::vector<std::string>{"recompute blocks, batch 4 -> 2, accumulate 1 -> 2"}));
  const auto none = memory_fixes(recipe, 3100, 50, bytes_with);
  EXPECT_EQ(texts_of(none), (std::vector<std::string>{"recompute blocks, batch 4 -> 1, accumulate 1 -> 4 (too large)"}));
  EXPECT_TRUE(says(text_of(none, 50), {". The change of the recipe that comes nearest: recompute blocks, batch 4 -> 1, accumulate 1 -> 4: "
                                       "-1.86 KiB, 1.12 KiB too much. "}));
  EXPECT_TRUE(memory_fixes(recipe, 3100, 48, bytes_with).empty()) << "far too large";
}

/// Those that a refusal lists, by "; ", each as it is written: "batch 2 -> 1, accumulate 1 -> 2: -800 B".
std::vector<std::string> listed_in(const std::string& message) {
  const std::string begin = "that fit: ";
  std::string list = message.substr(message.find(begin) + begin.size());
  list = list.substr(0, list.find(". `scaletrain"));
  std::vector<std::string> all;
  for (size_t end = 0; end != std::string::npos; list.erase(0, end == std::string::npos ? end : end + 2)) {
    end = list.find("; ");
    all.push_back(list.substr(0, end));
  }
  return all;
}

Recipe with(Recipe recipe, const std::string& fix) {
  const std::string changes = fix.substr(0, fix.find(": -")) + ",";
  for (size_t at = 0, end = 0; (end = changes.find(',', at)) != std::string::npos; at = end + 2) {
    const std::string change = changes.substr(at, end - at);
    const std::string key = change.substr(0, change.find(' ')), value = change.substr(change.rfind(' ') + 1);
    recipe.set(key, std::isdigit(value[0]) != 0 ? value : '"' + value + '"');
  }
  return recipe;
}

std::unique_ptr<Trainer> trained_within(int64_t limit, const Training& training, Recipe recipe) {
  recipe.device = "reference";
  return std::make_unique<Trainer>(std::make_shared<Model>(context_within(limit), build_gpt(training.options), 1), recipe, training.data());
}

TEST(MemoryFixes, OfARefusedTrainerFitOnceTheyAreApplied) {
  for (const auto& [ranks, fortieths] : {std::pair<int64_t, int64_t>{1, 35}, {2, 20}}) {  // of all; 20: less than one of two ranks
    Training training{.recipe = {.batch = 8, .ranks = ranks}};
    training.options.vocabulary = 64;
    const int64_t all = trained_within(0, training, training.recipe)->memory_bytes(), limit = all * fortieths / 40;
    const Error error = error_of([&] { trained_within(limit, training, training.recipe); });
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_TRUE(says(error.message(), {"The step's largest parts: stash", "the largest tensor is ", "Changes of the recipe that fit: "}));
    const std::vector<std::string> fixes = listed_in(error.message());
    EXPECT_FALSE(fixes.empty());
    for (const std::string& fix : fixes)
      EXPECT_NO_THROW(trained_within(limit, training, with(training.recipe, fix))->step()) << fix << " of " << error.message();
  }
}

TEST(MemoryFixes, OfARefusedRecomputeAutoFitToo) {
  Training training{.recipe = {.batch = 8, .recompute = "full"}};
  training.options.vocabulary = 64;
  training.options.layers = 1;
  const int64_t limit = trained_within(0, training, training.recipe)->memory_bytes() * 4 / 5;
  training.recipe.recompute = "auto";
  const Error error = error_of([&] { trained_within(limit, training, training.recipe); });
  EXPECT_EQ(error.code(), Code::out_of_memory);
  EXPECT_TRUE(says(error.message(), {"recompute: auto cannot fit ", "Changes of the recipe that fit: "})) << error.message();
  const std::vector<std::string> fixes = listed_in(error.message());
  EXPECT_FALSE(fixes.empty());
  for (const std::string& fix : fixes)
    EXPECT_NO_THROW(trained_within(limit, training, with(training.recipe, fix))->step()) << fix << " of " << error.message();
}

/// Rank 0 of two in a group: its error, none if they have made a step, and the bytes of its plan.
struct GroupRank {
  Error error{Code::ok, ""};
  int64_t planned = 0;
};

/// `limit`: of each rank's context; 0: none. `late`: their models allocate parameters late.
GroupRank two_ranks(const Training& training, Recipe recipe, int64_t limit, bool late) {
  GroupRank first;
  recipe.device = "reference";
  each_of_group(2, [&](int rank, Communicator& own) {
    ContextOptions options{.device = "reference", .threads = 1, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}};
    options.late_parameters = late;
    GroupRank mine;
    mine.error = error_of([&] {
      const auto model = std::make_shared<Model>(std::make_shared<Context>(std::move(options)), build_gpt(training.options), 1);
      Trainer trainer(model, recipe, training.data(), PlanOptions(), &own);
      mine.planned = trainer.plan().memory.beside_parameters() + trainer.plan().memory.on_device(Arena::parameters);
      trainer.step();
    });
    if (mine.error.code() != Code::ok) own.abort(mine.error.message());
    if (rank == 0) first = mine;
  });
  return first;
}

/// Rank 0 chooses the scopes of all ranks, and is the one that refuses.
TEST(MemoryFixes, OfARefusedRecomputeAutoOfAGroupFitToo) {
  for (const auto& [key, value] : {std::pair{"zero", "3"}, {"stages", "2"}, {"tensor", "2"}}) {
    Training training{.recipe = {.batch = 8, .ranks = 2, .recompute = "full"}};
    training.options.vocabulary = 64;
    training.options.heads = 2;
    training.recipe.set("micro_batches", "2");
    training.recipe.set(key, value);
    const int64_t limit = two_ranks(training, training.recipe, 0, false).planned * 4 / 5;
    training.recipe.recompute = "auto";
    const Error error = two_ranks(training, training.recipe, limit, false).error;
    EXPECT_EQ(error.code(), Code::out_of_memory) << error.message();
    EXPECT_TRUE(says(error.message(),
                     {"recompute: auto cannot fit ", "Changes of the recipe that fit: ", ". The rank with the least memory is rank 0"}))
        << error.message();
    const std::vector<std::string> fixes = listed_in(error.message());
    ASSERT_FALSE(fixes.empty());
    const Error refused = two_ranks(training, with(training.recipe, fixes[0]), limit, false).error;
    EXPECT_EQ(refused.code(), Code::ok) << key << ": " << fixes[0] << " of " << error.message() << "\n" << refused.message();
  }
}

TEST(MemoryFixes, CountTheMastersThatAnotherZeroShards) {
  Training training{.recipe = {.batch = 1, .ranks = 2}};
  training.options.vocabulary = 64;
  training.recipe.set("precision", "\"bf16\"");
  training.recipe.set("micro_batches", "2");
  const auto late_ranks = [&](int64_t zero, int64_t limit) {
    Recipe recipe = training.recipe;
    recipe.zero = zero;
    return two_ranks(training, recipe, limit, true);
  };
  const int64_t whole = late_ranks(0, 0).planned, sharded = late_ranks(1, 0).planned;
  ASSERT_LT(sharded, whole);
  EXPECT_EQ(late_ranks(1, whole - 1).error.code(), Code::ok);
  const Error error = late_ranks(0, whole - 1).error;
  EXPECT_EQ(error.code(), Code::out_of_memory);
  EXPECT_TRUE(says(error.message(), {text("zero 0 -> 1: -", text_of_bytes(whole - sharded), ". ")})) << error.message();
}

}  // namespace
}  // namespace st
