#include "exec/stage_runs.h"

#include <gtest/gtest.h>

namespace st {
namespace {

TEST(StageRuns, AnActionThatGoesOnAfterAWaitIsOneRun) {
  const StageAction first{Phase::forward, 0, 0}, second{Phase::forward, 1, 0};
  StageRuns runs;
  runs.make_room(2);
  runs.enter(first, 0);
  runs.leave(0);
  const double ended = runs.all()[0].ended;
  runs.enter(first, 0);
  runs.enter(first, 0);
  runs.enter(second, 0);
  runs.leave(0);
  ASSERT_EQ(runs.all().size(), 2U);
  EXPECT_EQ(runs.all()[0].action, first);
  EXPECT_EQ(runs.all()[1].action, second);
  const StageRun& run = runs.all()[0];
  EXPECT_GE(run.ended, ended);
  EXPECT_GE(run.waited, 0);
  EXPECT_LE(run.waited, run.ended - run.began);
  EXPECT_LE(run.ended, runs.all()[1].began);
}

}  // namespace
}  // namespace st
