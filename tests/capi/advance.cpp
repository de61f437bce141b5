// A step in slices gives the same bits as a whole step, and can be undone like one.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "small_run.h"

namespace {

using namespace st::test;

/// Runs slices of one instruction (none while the data's rows are missing) until the step is done; returns their number.
int slice(st_trainer* trainer, int64_t n, const st_named_view* batch, st_step_report* report) {
  int32_t done = 0;
  int slices = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (done == 0 && std::chrono::steady_clock::now() < end) {
    EXPECT_TRUE(works(st_trainer_advance(trainer, n, batch, 0, &done, report)));
    if (testing::Test::HasFailure()) return slices;
    ++slices;
  }
  return slices;
}

/// Runs the first n slices of a step; the step is not done afterwards.
void begin_slices(st_trainer* trainer, int64_t n, const st_named_view* batch, int slices) {
  int32_t done = 0;
  for (int i = 0; i < slices && done == 0; ++i) ASSERT_TRUE(works(st_trainer_advance(trainer, n, batch, 0, &done, nullptr)));
  ASSERT_EQ(done, 0);
}

TEST(Advance, SlicesOfNoTimeAreTheInstructionsOfThePlan) {
  SineRun rows;
  SmallRun data(text_file("instructions.txt", 3000));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(slice(rows.trainer, 2, rows.views, nullptr), instructions_of(rows.trainer));
    EXPECT_GE(slice(data.trainer, 0, nullptr, nullptr), instructions_of(data.trainer));
  }
}

TEST(Advance, AGenerousSliceIsTheWholeStep) {
  SineRun sliced, whole;
  int32_t done = 0;
  const auto report =
      filled(st_step_report_init, st_trainer_advance, sliced.trainer, 2, sliced.views, std::numeric_limits<int64_t>::max(), &done);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(report.step, 1);
  ASSERT_TRUE(works(whole.step()));
  EXPECT_EQ(sliced.digest(), whole.digest());
}

TEST(Advance, ACancelBeforeTheUpdateUndoesTheSlices) {
  const std::string text = text_file("undone.txt", 3000);
  SmallRun run(text), undisturbed(text);
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_step(r->trainer, 0, nullptr, nullptr)));
  const std::string before = run.digest();
  int32_t done = 0;
  for (const int slices : {1, 7, 40}) {
    begin_slices(run.trainer, 0, nullptr, slices);
    ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
    EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_advance(run.trainer, 0, nullptr, 0, &done, nullptr), {"last whole step"}));
    EXPECT_EQ(run.digest(), before);
  }
  begin_slices(run.trainer, 0, nullptr, 5);
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_step(run.trainer, 0, nullptr, nullptr), {"last whole step"})) << "any call consumes it";
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_step(r->trainer, 0, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest()) << "the same rows, the same random numbers";
}

TEST(Advance, AnUpdateThatHasBegunEndsWholeAndTheCancelIsForTheNextStep) {
  SineRun run, undisturbed;
  const int slices = slice(run.trainer, 2, run.views, nullptr);
  ASSERT_TRUE(works(undisturbed.step()));
  int32_t done = 0;
  begin_slices(run.trainer, 2, run.views, slices - 1);  // the last instruction is a parameter's update
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  ASSERT_TRUE(works(st_trainer_advance(run.trainer, 0, nullptr, 0, &done, nullptr))) << "an update needs no rows";
  EXPECT_EQ(done, 1);
  ASSERT_TRUE(works(undisturbed.step()));
  EXPECT_EQ(run.digest(), undisturbed.digest());
  EXPECT_TRUE(fails(ST_CANCELLED, run.step()));
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(Advance, NanInALaterSlicesRowsUndoesTheStep) {
  SineRun run, undisturbed;
  const std::string before = run.digest();
  const float good = std::exchange(run.x[6], std::numeric_limits<float>::quiet_NaN());  // in the second micro-batch
  int32_t done = 0;
  st_status status = ST_OK;
  int slices = 0;
  for (; status == ST_OK && done == 0; ++slices) status = st_trainer_advance(run.trainer, 2, run.views, 0, &done, nullptr);
  EXPECT_TRUE(fails(ST_NOT_FINITE, status, {"row 6"}));
  EXPECT_GT(slices, 3);
  EXPECT_EQ(run.digest(), before);
  run.x[6] = good;
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(Advance, GoingOnWithoutTheBatchUndoesTheStep) {
  SineRun run, undisturbed;
  int32_t done = 0;
  begin_slices(run.trainer, 2, run.views, 3);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_advance(run.trainer, 0, nullptr, 0, &done, nullptr), {"same", "rolled back"}));
  begin_slices(run.trainer, 2, run.views, 3);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_advance(run.trainer, 1, run.views, 0, &done, nullptr), {"\"y\"", "missing"}));
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(Advance, AnotherTrainerIsBusyWhileAnUpdateIsHalfDone) {
  SineRun run;
  const auto other = hold<HeldTrainer>(st_trainer_create, run.model, run.recipe, nullptr);
  const int slices = slice(run.trainer, 2, run.views, nullptr);
  begin_slices(run.trainer, 2, run.views, slices - 1);
  EXPECT_TRUE(fails(ST_BUSY, st_trainer_step(other, 2, run.views, nullptr), {"not finished its update"}));
  slice(run.trainer, 2, run.views, nullptr);
  EXPECT_TRUE(works(st_trainer_step(other, 2, run.views, nullptr)));
}

TEST(Advance, ATrainerDestroyedInItsUpdateLeavesTheWeightsOfAWholeStep) {
  SineRun run, undisturbed;
  const int slices = slice(run.trainer, 2, run.views, nullptr);
  ASSERT_TRUE(works(undisturbed.step()));
  begin_slices(run.trainer, 2, run.views, slices - 1);
  run.trainer.reset();
  ASSERT_TRUE(works(undisturbed.step()));
  float mine[16], theirs[16];
  const int64_t dims[] = {16, 1};
  const st_view to_mine = {ST_F32, 2, dims, nullptr, mine, sizeof mine}, to_theirs = {ST_F32, 2, dims, nullptr, theirs, sizeof theirs};
  ASSERT_TRUE(works(st_model_get(run.model, "second.weight", &to_mine)));
  ASSERT_TRUE(works(st_model_get(undisturbed.model, "second.weight", &to_theirs)));
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(mine[i], theirs[i]);
}

TEST(Advance, RefusesWhatIsNoArgument) {
  SineRun run;
  int32_t done = 7;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_advance(run.trainer, 2, run.views, -1, &done, nullptr), {"nanoseconds", "-1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_advance(run.trainer, 2, nullptr, 0, &done, nullptr), {"batch is NULL"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_advance(run.trainer, 0, nullptr, 0, &done, nullptr),
                    {"has no data", "st_data", "st_trainer_step with a batch"}));
  EXPECT_TRUE(works(run.step()));
}

}  // namespace
