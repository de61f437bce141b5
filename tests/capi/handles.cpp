// Handles: looked up, never dereferenced. Whatever a host passes, a call answers.
#include <sys/wait.h>
#include <unistd.h>

#include "small_run.h"

namespace {

using namespace st::test;

int64_t live(const char* kind) {
  int64_t count = -1;
  EXPECT_TRUE(works(st_live_handles(kind, &count)));
  return count;
}

TEST(Handles, AreInvalidOnceDestroyed) {
  HeldContext context;
  ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
  st_graph* graph = nullptr;
  ASSERT_TRUE(works(st_graph_create(context, &graph)));
  EXPECT_TRUE(works(st_graph_destroy(graph)));
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_graph_destroy(graph), {"st_graph_destroy", "graph", "destroyed"}));
  const char* text = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_graph_text(graph, &text), {"st_graph_text", "destroyed"}));
}

TEST(Handles, StayInvalidWhenTheirSlotIsUsedAgain) {
  HeldContext context;
  ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
  st_graph *first = nullptr, *second = nullptr;
  ASSERT_TRUE(works(st_graph_create(context, &first)));
  ASSERT_TRUE(works(st_graph_destroy(first)));
  ASSERT_TRUE(works(st_graph_create(context, &second)));
  EXPECT_NE(first, second);
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_graph_destroy(first)));
  EXPECT_TRUE(works(st_graph_destroy(second)));
}

TEST(Handles, OfAnotherKindAreNamed) {
  HeldContext context;
  HeldRecipe recipe;
  ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
  ASSERT_TRUE(works(st_recipe_create(nullptr, recipe.out())));
  st_trainer* trainer = nullptr;
  auto* wrong = reinterpret_cast<st_model*>(static_cast<st_context*>(context));
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_trainer_create(wrong, recipe, nullptr, &trainer), {"st_trainer_create", "model", "context"}));
  EXPECT_EQ(trainer, nullptr);
}

TEST(Handles, ThatAreNoneOfOursAreRefusedWithoutALook) {
  static int something_else = 0;
  const uint64_t bits[] = {
      reinterpret_cast<uint64_t>(&something_else), 1, 0x107, 0xFFFFFFFFFFFFFFFF, 0x0000000100000101, 0x8000000000000006};
  for (const uint64_t b : bits) {
    const auto as = [b]<class Handle>(Handle*) { return reinterpret_cast<Handle*>(b); };
    const char* text = nullptr;
    int64_t number = 0;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_graph_text(as(static_cast<st_graph*>(nullptr)), &text), {"st_graph_text"})) << b;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_trainer_step(as(static_cast<st_trainer*>(nullptr)), 0, nullptr, nullptr))) << b;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_trainer_cancel(as(static_cast<st_trainer*>(nullptr))))) << b;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_data_rows(as(static_cast<st_data*>(nullptr)), &number))) << b;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_model_destroy(as(static_cast<st_model*>(nullptr))))) << b;
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_predictor_destroy(as(static_cast<st_predictor*>(nullptr))))) << b;
  }
}

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

// In the child: 0 when every call answered as it should.
int calls_after_fork(SmallRun& run) {
  st_context* context = nullptr;
  const char* text = nullptr;
  int wrong = 0;
  wrong += st_trainer_step(run.trainer, 0, nullptr, nullptr) != ST_WRONG_STATE;
  wrong += st_trainer_cancel(run.trainer) != ST_WRONG_STATE;
  wrong += st_trainer_destroy(run.trainer) != ST_WRONG_STATE;
  wrong += st_context_create(nullptr, &context) != ST_WRONG_STATE;
  wrong += std::string(st_last_error()).find("forked") == std::string::npos;
  wrong += st_version(&text) != ST_OK;
  return wrong;
}

TEST(Handles, AreInTheWrongStateAfterAFork) {
  SmallRun run(text_file("fork.txt", 2000));
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang is a failure, not a wait
    _exit(calls_after_fork(run));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr))) << "the parent goes on";
}

TEST(Handles, OfACallThatFailedAreNotMade) {
  const int64_t before = live(nullptr);
  HeldContext context;
  ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
  st_model* model = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_builtin(context, "gtp", nullptr, 0, &model), {"gtp", "gpt"}));
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(live(nullptr), before + 1);
}

}  // namespace
