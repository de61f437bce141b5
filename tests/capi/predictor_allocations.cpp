// A separate program, since it counts all allocations of the process.
#include <thread>

#include "allocation_count.h"
#include "small_run.h"

namespace {

using namespace st::test;

TEST(PredictorAllocations, NoneOnceTheRowsAreKnown) {
  SineRun run;
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  float x[] = {1, 2}, y[2];
  const int64_t dims[] = {2, 1}, columns[] = {1, 2};
  st_named_view in = {"x", {ST_F32, 2, dims, nullptr, x, sizeof x}};
  const st_named_view out = {"prediction", {ST_F32, 2, dims, nullptr, y, sizeof y}};
  const auto predict = [&] { return st_predictor_run(predictor, 1, &in, 1, &out); };
  const auto expect_none = [&](const char* when) {
    const int64_t before = st::allocation_count();
    st_status status = ST_OK;
    for (int i = 0; i < 50; ++i) status = status == ST_OK ? predict() : status;
    EXPECT_EQ(st::allocation_count(), before) << when;
    EXPECT_TRUE(works(status));
  };
  const int64_t none = st::allocation_count();
  ASSERT_TRUE(works(predict()));
  EXPECT_GT(st::allocation_count(), none) << "the first run plans: the counter counts";
  expect_none("the same rows again");
  in.view.strides = columns;
  ASSERT_TRUE(works(predict()));
  expect_none("with strides");
  for (int i = 0; i < 2; ++i) {  // two snapshots alternate
    ASSERT_TRUE(works(st_predictor_refresh(predictor)));
    ASSERT_TRUE(works(predict()));
  }
  for (int i = 0; i < 4; ++i) {
    const int64_t before = st::allocation_count();
    ASSERT_TRUE(works(st_predictor_refresh(predictor)));
    EXPECT_EQ(st::allocation_count(), before) << "a refresh reuses the previous snapshot";
    expect_none("after a refresh");
  }
}

}  // namespace
