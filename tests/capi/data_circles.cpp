// Two sources of rows whose callbacks wait for each other: one of them gets an error, and nothing hangs.
#include <atomic>
#include <functional>

#include "sine_rows.h"

namespace {

using namespace st::test;

/// Two callbacks and four trainers. The first calls of the two callbacks wait for each other; each then runs the test's action on a trainer
/// that uses the other's rows.
class DataCircles : public testing::Test {
 protected:
  using Act = std::function<st_status(SineTrainer& other)>;

  void meet(const Act& act) {
    for (int side = 0; side < 2; ++side) {
      fill_[side].before([this, side, act](int64_t call) {
        if (!comes_true([&] { return standing_.load(); })) return ST_TIMEOUT;
        if (call > 0) return ST_OK;
        ++inside_;
        if (!comes_true([&] { return inside_ == 2; })) return ST_TIMEOUT;
        answer_[side] = act(*second_[1 - side]);
        ++answered_;
        return ST_OK;
      });
      ASSERT_TRUE(works(fill_[side].open(context_, data_[side].out())));
    }
    for (int side = 0; side < 2; ++side) {
      first_[side] = std::make_unique<SineTrainer>(context_, data_[side]);
      second_[side] = std::make_unique<SineTrainer>(context_, data_[side]);
    }
    standing_ = true;
    ASSERT_TRUE(comes_true([&] { return answered_ == 2; })) << "they wait for each other";
  }

  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
  SineFill fill_[2];
  HeldData data_[2];
  std::atomic<bool> standing_{false};
  std::atomic<int> inside_{0}, answered_{0};
  std::atomic<st_status> answer_[2] = {ST_INTERNAL, ST_INTERNAL};
  std::unique_ptr<SineTrainer> first_[2], second_[2];
};

TEST_F(DataCircles, OfStepsAreRefusedWhereTheyClose) {
  meet([](SineTrainer& other) { return other.step(); });
  EXPECT_TRUE(answer_[0] == ST_BUSY || answer_[1] == ST_BUSY) << answer_[0] << " " << answer_[1];
  for (const st_status answer : {answer_[0].load(), answer_[1].load()}) EXPECT_TRUE(answer == ST_BUSY || answer == ST_OK) << answer;
  for (int side = 0; side < 2; ++side)
    for (SineTrainer* run : {first_[side].get(), second_[side].get()})
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(works(run->step()));
}

TEST_F(DataCircles, OfEvaluationsAreRefusedWhereTheyClose) {
  meet([this](SineTrainer& other) {
    auto report = filled(st_evaluation_init);
    return st_trainer_evaluate(other.trainer, data_[&other == second_[1].get() ? 1 : 0], &report);
  });
  EXPECT_TRUE(answer_[0] == ST_BUSY || answer_[1] == ST_BUSY) << answer_[0] << " " << answer_[1];
  for (int side = 0; side < 2; ++side) EXPECT_TRUE(works(second_[side]->step()));
}

TEST_F(DataCircles, OfDestructionsEnd) {
  meet([](SineTrainer& other) {
    st_trainer* trainer = other.trainer;
    *other.trainer.out() = nullptr;
    return st_trainer_destroy(trainer);
  });
  EXPECT_EQ(answer_[0], ST_OK);
  EXPECT_EQ(answer_[1], ST_OK);
  for (int side = 0; side < 2; ++side) {
    EXPECT_TRUE(works(first_[side]->step()));
    first_[side].reset();
    second_[side].reset();
    data_[side].reset();
    EXPECT_TRUE(comes_true([&] { return fill_[side].released() == 1; })) << "the threads ended and released the data";
  }
}

}  // namespace
