// Handles: destroyed in any order, counted by kind. Calls with wrong handles: bad_handles.cpp; calls after a fork: handles_after_fork.cpp.
#include "small_run.h"

namespace {

using namespace st::test;

int64_t live(const char* kind) { return asked<int64_t>(st_live_handles, kind); }

TEST(Handles, MayBeDestroyedInAnyOrder) {
  const int64_t before = live(nullptr);
  const std::string text = text_file("order.txt", 2000);
  {
    SmallRun run(text);
    run.context.reset();
    run.model.reset();
    run.recipe.reset();
    run.data.reset();
    EXPECT_TRUE(works(st_trainer_run(run.trainer, 2, nullptr, nullptr)));
  }
  EXPECT_EQ(live(nullptr), before);
}

TEST(Handles, OfAPredictorKeepItsModel) {
  HeldPredictor predictor;
  {
    SmallRun run;
    ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out())));
  }
  const int32_t prompt = 5;
  const auto count = [](void* user, int32_t) { return ++*static_cast<int*>(user), st_status{ST_OK}; };
  int tokens = 0;
  auto options = filled(st_generate_options_init);
  options.tokens = 3;
  EXPECT_TRUE(works(st_predictor_generate(predictor, 1, &prompt, &options, count, &tokens)));
  EXPECT_EQ(tokens, 3);
}

TEST(Handles, AreCountedByKind) {
  const int64_t contexts = live("context"), models = live("model"), all = live(nullptr);
  {
    SineRun run;
    EXPECT_EQ(live("context"), contexts + 1);
    EXPECT_EQ(live("model"), models + 1);
    EXPECT_EQ(live(nullptr), all + 5);
  }
  EXPECT_EQ(live(nullptr), all);
  int64_t count = 0;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_live_handles("modle", &count), {"modle"}));
}

TEST(Handles, OfACallThatFailedAreNotMade) {
  const int64_t before = live(nullptr);
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  st_model* model = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_builtin(context, "gtp", nullptr, 0, &model), {"gtp", "gpt"}));
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(live(nullptr), before + 1);
}

}  // namespace
