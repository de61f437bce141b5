// The moving average of the weights: read, evaluated, used, refused.
#include <cmath>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

constexpr const char* kAveraged = R"({"batch": 4, "accumulate": 2, "warmup": 0, "ema_decay": 0.75})";

using Read = st_status (*)(SineRun& run, const char* name, const st_view* to);
st_status weight(SineRun& run, const char* name, const st_view* to) { return st_model_get(run.model, name, to); }
st_status average(SineRun& run, const char* name, const st_view* to) { return st_trainer_average(run.trainer, name, to); }

/// second.weight, [16, 1].
std::vector<double> values(SineRun& run, Read read) {
  std::vector<double> made(16, NAN);
  const int64_t dims[] = {16, 1};
  const st_view to = {ST_F64, 2, dims, nullptr, made.data(), 128};
  EXPECT_TRUE(works(read(run, "second.weight", &to)));
  return made;
}

// Computed in double from the weights after each step; the average itself is f32, and the steps are few.
TEST(WeightAverage, FollowsTheWeightsAlsoOfStepsByTheHostsLoss) {
  SineRun run(kAveraged), by_hand(kAveraged);
  std::vector<double> expected;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(works(run.step()));
    for (const int64_t k : {0, 1}) {
      const SineHalf half(by_hand, k);
      ASSERT_TRUE(works(forward(by_hand.trainer, 2, half.views)));
      ASSERT_TRUE(works(st_trainer_backward(by_hand.trainer, 0, nullptr)));
    }
    ASSERT_TRUE(works(st_trainer_apply(by_hand.trainer, nullptr)));
    const std::vector<double> now = values(run, weight);
    if (step == 0) expected = now;
    for (size_t i = 0; i < now.size(); ++i) expected[i] = 0.75 * expected[i] + 0.25 * now[i];
  }
  const std::vector<double> averages = values(run, average);
  for (size_t i = 0; i < averages.size(); ++i) EXPECT_NEAR(averages[i], expected[i], 1e-6) << i;
  EXPECT_NE(averages, values(run, weight));
  // The same steps, except for the order of sums.
  const std::vector<double> others = values(by_hand, average);
  for (size_t i = 0; i < averages.size(); ++i) EXPECT_NEAR(others[i], averages[i], 1e-5) << i;
}

TEST(WeightAverage, RefusesNamesViewsAndDecaysThatAreNone) {
  SineRun run(kAveraged);
  ASSERT_TRUE(works(run.step()));
  float bias[2] = {};
  const int64_t one[] = {1}, two[] = {2};
  const st_view to = {ST_F32, 1, one, nullptr, bias, sizeof bias};
  EXPECT_TRUE(works(st_trainer_average(run.trainer, "second.bias", &to)));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_trainer_average(run.trainer, "second.bia", &to), {"second.bia", "\"second.bias\""}));
  st_view bad = to;
  bad.dims = two;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_average(run.trainer, "second.bias", &bad), {"[1]", "[2]"}));
  bad = to;
  bad.dtype = ST_I32;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_average(run.trainer, "second.bias", &bad), {"i32", "f32"}));
  const auto info = last_error();
  ASSERT_NE(info.tensor, nullptr);
  EXPECT_STREQ(info.tensor, "second.bias");
}

TEST(WeightAverage, TheLogsLastLineHasItsLossWhereItWasMeasuredLast) {
  SineRun run(kAveraged);
  const std::string path = file_of("average.jsonl", "");
  const auto data = hold<HeldData>(st_data_arrays, run.context, 8, 2, run.views, nullptr, nullptr);
  ASSERT_TRUE(works(st_trainer_log(run.trainer, path.c_str())));
  ASSERT_TRUE(works(run.step()));
  const auto evaluation = filled(st_evaluation_init, st_trainer_evaluate_average, run.trainer, data);
  ASSERT_TRUE(works(st_trainer_log_end(run.trainer, 1)));
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(st_trainer_log_end(run.trainer, 1)));
  std::string log(4096, ' ');
  FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  log.resize(std::fread(log.data(), 1, log.size(), file));
  std::fclose(file);
  char expected[64];
  std::snprintf(expected, sizeof expected, "\"validation_loss\":1,\"ema_val_loss\":%.9g}\n", evaluation.loss);
  EXPECT_NE(log.find(expected), std::string::npos) << log;
  EXPECT_TRUE(log.ends_with("\"validation_loss\":1,\"ema_val_loss\":null}\n")) << log;
}

}  // namespace
