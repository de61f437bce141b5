// A predictor: generates text from a model, the same for the same seed.
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

class Predictor : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out()))); }
  std::vector<int32_t> write(const st_generate_options& options, const std::vector<int32_t>& prompt = {1, 2, 3}) {
    const Written text = written(predictor, options, prompt);
    EXPECT_TRUE(works(text.status));
    return text.tokens;
  }
  SmallRun run;
  HeldPredictor predictor;
};

TEST_F(Predictor, WritesWithTheWeightsOfItsLastRefresh) {
  auto options = filled(st_generate_options_init);
  options.tokens = 12;
  options.temperature = 0;
  const auto before = write(options);
  ASSERT_TRUE(works(st_recipe_set(run.recipe, "lr", "0.05")));
  run.trainer.reset();
  ASSERT_TRUE(works(st_trainer_create(run.model, run.recipe, nullptr, run.trainer.out())));
  TokenBatch batch(6, 9);  // the token after t is t + 1
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(works(st_trainer_step(run.trainer, 2, batch.views(), nullptr)));
  EXPECT_EQ(write(options), before);
  ASSERT_TRUE(works(st_predictor_refresh(predictor)));
  EXPECT_NE(write(options), before);
}

TEST_F(Predictor, ACancelOfItsContextEndsTheText) {
  const auto cancel = [](void* context, int32_t) { return st_context_cancel(static_cast<st_context*>(context)); };
  const int32_t prompt = 1;
  const st_context* context = run.context;
  EXPECT_TRUE(
      fails(ST_CANCELLED, st_predictor_generate(predictor, 1, &prompt, nullptr, cancel, const_cast<st_context*>(context)), {"cancelled"}));
  EXPECT_EQ(write(filled(st_generate_options_init)).size(), 200U) << "a cancel does not apply to later calls";
}

TEST_F(Predictor, GivesIdleBuffersBackWhenItsContextIsTrimmed) {
  const auto allocated = [&] { return memory_of(run.context).allocated_bytes; };
  auto options = filled(st_generate_options_init);
  options.tokens = 4;
  const int64_t before = allocated();
  const auto text = write(options);
  EXPECT_GT(allocated(), before);
  ASSERT_TRUE(works(st_context_trim(run.context)));
  EXPECT_EQ(allocated(), before);
  EXPECT_EQ(write(options), text);
}

TEST_F(Predictor, TheHostMayEndTheText) {
  int left = 3;
  const auto count = [](void* user, int32_t) { return --*static_cast<int*>(user) > 0 ? st_status{ST_OK} : st_status{ST_CANCELLED}; };
  const int32_t prompt = 1;
  EXPECT_TRUE(works(st_predictor_generate(predictor, 1, &prompt, nullptr, count, &left)));
  EXPECT_EQ(left, 0);
}

TEST_F(Predictor, AskedForWhatCannotBeItSaysSo) {
  const auto ignore = [](void*, int32_t) { return st_status{ST_OK}; };
  const int32_t prompt[] = {1, 256};
  auto options = filled(st_generate_options_init);
  const auto generate = [&](int64_t n) { return st_predictor_generate(predictor, n, prompt, &options, ignore, nullptr); };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, generate(2), {"token 256", "[0, 256), the vocabulary"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, generate(-1), {"-1 tokens"}));
  options.tokens = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, generate(1), {"tokens must be at least 0, got -1"}));
  options = filled(st_generate_options_init);
  options.temperature = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, generate(1), {"temperature must be at least 0 and finite, got -1"}));
  options = filled(st_generate_options_init);
  options.top_k = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, generate(1), {"top_k must be at least 0", "got -1"}));
}

TEST_F(Predictor, AModelThatWritesNoTextIsRefused) {
  HeldPredictor none;
  const auto mlp = hold<HeldModel>(st_model_builtin, run.context, "mlp", nullptr, 0);
  ASSERT_TRUE(works(st_predictor_create(mlp, nullptr, none.out()))) << "other outputs can still run";
  const int32_t prompt = 1;
  const auto ignore = [](void*, int32_t) { return st_status{ST_OK}; };
  EXPECT_NE(st_predictor_generate(none, 1, &prompt, nullptr, ignore, nullptr), ST_OK);
  EXPECT_TRUE(std::string(st_last_error()).find("logits") != std::string::npos) << st_last_error();
}

}  // namespace
