// Permitted actions of callbacks: a release function may create and destroy other handles, and between two steps on_step may steer its own
// run. Refused actions: busy_in_callbacks.cpp.
#include <functional>
#include <memory>

#include "dlpack_of_others.h"
#include "sine_rows.h"

namespace {

using namespace st::test;

/// The host's action when it gets a borrowed resource back, and a check that it gets it once.
struct Loan {
  explicit Loan(std::function<void()> at_end) : act(std::move(at_end)) {}
  static void end(void* user) {
    auto& loan = *static_cast<Loan*>(user);
    ++loan.ended;
    loan.act();
  }
  std::function<void()> act;
  int ended = 0;
};

int64_t live() { return asked<int64_t>(st_live_handles, nullptr); }

class AllowedInCallbacks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    model_values.assign(4, 1.0F);
  }
  st_view view() { return {ST_F32, 1, dims, nullptr, model_values.data(), 16}; }

  HeldContext context;
  const int64_t dims[1] = {4};
  std::vector<float> model_values;
};

TEST_F(AllowedInCallbacks, AReleaseMayMakeUseAndDestroyHandles) {
  const int64_t before = live();
  HeldTensor first, second;
  auto other = std::make_unique<SineTrainer>(context, nullptr);
  Loan inner([&] { other.reset(); });
  Loan outer([&] {
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_tensor_destroy(first)));  // already destroyed
    SineRun made;
    EXPECT_TRUE(works(made.step()));
    second.reset();
  });
  const st_view lent = view();
  ASSERT_TRUE(works(st_tensor_wrap(context, &lent, Loan::end, &inner, second.out())));
  ASSERT_TRUE(works(st_tensor_wrap(context, &lent, Loan::end, &outer, first.out())));
  EXPECT_TRUE(works(st_tensor_destroy(first)));
  *first.out() = nullptr;
  EXPECT_EQ(outer.ended, 1);
  EXPECT_EQ(inner.ended, 1);
  EXPECT_EQ(live(), before);
}

TEST_F(AllowedInCallbacks, TheReleaseOfDataMayDestroyItsContextAndItsModel) {
  const int64_t before = live() - 1;
  SineRows rows;
  std::unique_ptr<SineTrainer> run;
  Loan loan([&] {
    context.reset();
    run.reset();
  });
  auto data = hold<HeldData>(st_data_arrays, context, kSineRows, 2, rows.views, Loan::end, &loan);
  run = std::make_unique<SineTrainer>(context, data);
  ASSERT_TRUE(works(run->created));
  ASSERT_TRUE(works(run->step()));
  run->trainer.reset();
  data.reset();
  EXPECT_EQ(loan.ended, 1);
  EXPECT_EQ(live(), before);
}

TEST_F(AllowedInCallbacks, ADlpackDeleterMayDestroyHandles) {
  const int64_t before = live();
  struct Foreign {
    DLManagedTensor managed{};
    HeldTensor* other = nullptr;
    HeldRecipe recipe;
    int deleted = 0;
  } foreign;
  int64_t shape[] = {4};
  const st_view lent = view();
  auto other = hold<HeldTensor>(st_tensor_wrap, context, &lent, nullptr, nullptr);
  ASSERT_TRUE(works(st_recipe_create(nullptr, foreign.recipe.out())));
  foreign.other = &other;
  foreign.managed.dl_tensor = {model_values.data(), {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  foreign.managed.manager_ctx = &foreign;
  foreign.managed.deleter = [](DLManagedTensor* self) {
    auto& f = *static_cast<Foreign*>(self->manager_ctx);
    ++f.deleted;
    f.other->reset();
    f.recipe.reset();
  };
  auto taken = hold<HeldTensor>(st_tensor_from_dlpack, context, &foreign.managed);
  DLManagedTensor* exported = nullptr;
  ASSERT_TRUE(works(st_tensor_to_dlpack(taken, &exported)));
  taken.reset();
  EXPECT_EQ(foreign.deleted, 0) << "the object made from it still exists";
  exported->deleter(exported);
  EXPECT_EQ(foreign.deleted, 1);
  EXPECT_EQ(live(), before);
}

/// The action after step 1 and its effect: the rate and weights of steps 2 and 3, and the snapshot after each.
struct Steering {
  SineTrainer& run;
  st_predictor* predictor;
  std::vector<float> weights = std::vector<float>(16, 0.25F);
  std::vector<float> predicted = {};

  void steer() {
    const int64_t w_dims[] = {1, 16};
    const st_view from = {ST_F32, 2, w_dims, nullptr, weights.data(), 64};
    EXPECT_TRUE(works(st_trainer_set(run.trainer, "lr", "0.05")));
    EXPECT_EQ(text_of(st_trainer_get, run.trainer, "lr"), "0.05");
    EXPECT_TRUE(works(st_model_set(run.model, "first.weight", &from)));
  }
  void look() {
    const int64_t column[] = {1, 1};
    float x = 0.5F;
    const st_named_view in = {"x", {ST_F32, 2, column, nullptr, &x, 4}};
    const st_named_view out = {"prediction", {ST_F32, 2, column, nullptr, &predicted.emplace_back(), 4}};
    EXPECT_TRUE(works(st_predictor_refresh(predictor)));
    EXPECT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out)));
  }
};

TEST_F(AllowedInCallbacks, OnStepMaySetRateAndWeightsAndRefreshPredictors) {
  SineRows rows;
  const auto data = hold<HeldData>(st_data_arrays, context, kSineRows, 2, rows.views, nullptr, nullptr);
  SineTrainer run(context, data), by_hand(context, data);
  const auto of_run = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const auto of_hand = hold<HeldPredictor>(st_predictor_create, by_hand.model, nullptr);
  Steering steered{run, of_run}, wanted{by_hand, of_hand};
  const auto on_step = [](void* user, const st_step_report* report) {
    auto& s = *static_cast<Steering*>(user);
    if (report->step == 1) s.steer();
    EXPECT_EQ(report->lr == 0.05, report->step > 1);
    s.look();
    return st_status{ST_OK};
  };
  ASSERT_TRUE(works(st_trainer_run(run.trainer, 3, on_step, &steered)));
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(works(by_hand.step()));
    if (step == 1) wanted.steer();
    wanted.look();
  }
  EXPECT_EQ(run.digest(), by_hand.digest());
  EXPECT_EQ(steered.predicted, wanted.predicted);
  EXPECT_NE(steered.predicted[1], steered.predicted[2]) << "a refresh uses the newest step";
}

}  // namespace
