// Loss scaling alone, over host arrays. The scale of a run: tests/unit/optim/loss_scaler_test.cpp, tests/unit/parts/scaled_step_test.cpp.
#include <cmath>
#include <limits>
#include <vector>

#include "host_arrays.h"
#include "small_run.h"

namespace st::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class CLossScaler : public testing::Test {
 protected:
  /// Makes a host's step with this gradient; returns the scale that was used.
  static double run_step(st_loss_scaler* s, float value) {
    const bool is_good = value != kInf;
    FloatArray g{{value}};
    const st_view view = g.view();
    const auto scale = asked<double>(st_loss_scaler_scale, s);
    EXPECT_EQ(asked<int32_t>(st_loss_scaler_unscale, s, 1, &view), is_good ? 1 : 0) << "finite";
    EXPECT_EQ(asked<int32_t>(st_loss_scaler_step, s), is_good ? 1 : 0) << "run";
    EXPECT_EQ(asked<int32_t>(st_loss_scaler_update, s), is_good ? 0 : 1) << "skipped";
    return scale;
  }
  HeldLossScaler scaler(const st_loss_scaler_options* options = nullptr) {
    return hold<HeldLossScaler>(st_loss_scaler_create, context_, options);
  }
  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
};

TEST_F(CLossScaler, HasGradScalersDefaults) {
  const auto options = filled(st_loss_scaler_options_init);
  EXPECT_EQ(options.enabled, 1);
  EXPECT_EQ(options.dynamic, 1);
  EXPECT_EQ(options.threads, 0);
  EXPECT_EQ(options.initial_scale, 65536);
  EXPECT_EQ(options.growth_factor, 2);
  EXPECT_EQ(options.backoff_factor, 0.5);
  EXPECT_EQ(options.growth_interval, 2000);
  EXPECT_EQ(options.minimum_scale, 1);
  EXPECT_EQ(options.hysteresis, 1);
  EXPECT_EQ(options.consecutive_hysteresis, 0);
}

// As DeepSpeed does: the first overflow is tolerated, the second backs off; with consecutive_hysteresis a good step in between resets the
// count.
TEST_F(CLossScaler, BearsOverflowsByItsHysteresis) {
  for (const int32_t consecutive : {0, 1}) {
    auto options = filled(st_loss_scaler_options_init);
    options.hysteresis = 2;
    options.consecutive_hysteresis = consecutive;
    const auto s = scaler(&options);
    std::vector<double> scales;
    for (const float value : {kInf, 1.0F, kInf, kInf}) scales.push_back(run_step(s, value));
    EXPECT_EQ(scales,
              consecutive != 0 ? (std::vector<double>{65536, 65536, 65536, 65536}) : (std::vector<double>{65536, 65536, 65536, 32768}));
    EXPECT_EQ(asked<double>(st_loss_scaler_scale, s), consecutive != 0 ? 32768 : 16384);
  }
}

TEST_F(CLossScaler, BadOptionsAreNamed) {
  const auto refused = [&](auto change, std::initializer_list<std::string_view> words) {
    auto options = filled(st_loss_scaler_options_init);
    change(options);
    HeldLossScaler made;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_create(context_, &options, made.out()), words));
  };
  refused([](auto& o) { o.initial_scale = -1; }, {"the scale is -1"});
  refused([](auto& o) { o.initial_scale = kInf; }, {"the scale is inf"});
  refused([](auto& o) { o.initial_scale = NAN; }, {"the scale is nan"});
  refused([](auto& o) { o.growth_factor = 1; }, {"growth factor is 1", "above 1"});
  refused([](auto& o) { o.backoff_factor = 1; }, {"backoff factor is 1", "between 0 and 1"});
  refused([](auto& o) { o.growth_interval = 0; }, {"growth interval must be at least 1 step, got 0"});
  refused([](auto& o) { o.minimum_scale = 0; }, {"minimum is 0"});
  refused([](auto& o) { o.hysteresis = 0; }, {"hysteresis must be at least 1 overflow, got 0"});
  refused([](auto& o) { o.threads = -1; }, {"threads is -1"});
}

TEST_F(CLossScaler, BadGradientsAreNamedAndNothingIsWritten) {
  const auto s = scaler();
  EXPECT_EQ(asked<double>(st_loss_scaler_scale, s), 65536);
  FloatArray g{{65536, 65536, 65536, 65536}};
  const int64_t two[] = {2}, four[] = {4}, zero_stride[] = {0};
  int32_t whole[4] = {}, flag = 0;
  const auto refused = [&](const st_view& second, std::initializer_list<std::string_view> words) {
    const st_view views[] = {{ST_F32, 1, two, nullptr, g.values.data(), 8}, second};
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_unscale(s, 2, views, &flag), words));
    EXPECT_EQ(g.values, std::vector<float>(4, 65536));
  };
  float* const values = g.values.data();
  refused({ST_I32, 1, four, nullptr, whole, 16}, {"gradient 1", "i32", "f32, f64, bf16 or f16"});
  refused({ST_F32, 1, two, nullptr, values + 1, 8}, {"gradient 0", "gradient 1", "share memory"});
  refused({ST_F32, 1, two, nullptr, values, 8}, {"share memory"});
  refused({ST_F32, 1, two, zero_stride, values + 2, 8}, {"gradient 1", "share memory through its strides"});
  refused({ST_F32, 1, two, nullptr, reinterpret_cast<char*>(values + 2) - 2, 8}, {"gradient 1", "aligned"});
  refused({ST_F32, 1, two, nullptr, nullptr, 8}, {"gradient 1", "NULL"});
  refused({ST_F32, 1, four, nullptr, values + 2, 8}, {"gradient 1", "needs 16 bytes"});
  const st_view good = g.view();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_unscale(s, 0, &good, &flag), {"at least one gradient"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_unscale(s, -1, &good, &flag), {"n is -1"}));
  ASSERT_TRUE(works(st_loss_scaler_unscale(s, 1, &good, &flag)));
  EXPECT_EQ(g.values, std::vector<float>(4, 1));
}

TEST_F(CLossScaler, ColumnsOfOneArrayMayBeGradientsOfTheirOwn) {
  const auto s = scaler();
  EXPECT_EQ(asked<double>(st_loss_scaler_scale, s), 65536);
  std::vector<float> values(12, 65536);
  const int64_t half[] = {3, 2}, rows[] = {4, 1};
  const st_view views[] = {{ST_F32, 2, half, rows, values.data() + 2, 40}, {ST_F32, 2, half, rows, values.data(), 48}};
  EXPECT_EQ(asked<int32_t>(st_loss_scaler_unscale, s, 2, views), 1);
  EXPECT_EQ(values, std::vector<float>(12, 1));
}

TEST_F(CLossScaler, GoesOnFromItsState) {
  auto options = filled(st_loss_scaler_options_init);
  options.growth_interval = 3;
  const auto a = scaler(&options), b = scaler(&options);
  for (const float value : {kInf, 1.0F, 1.0F}) run_step(a, value);
  const std::string state = text_of(st_loss_scaler_state, a);
  EXPECT_EQ(state, R"({"scale":32768.0,"good_steps":2})");
  ASSERT_TRUE(works(st_loss_scaler_restore(b, state.c_str())));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run_step(a, 1), run_step(b, 1));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_restore(b, R"({"scale":-1,"good_steps":0})"), {"scale is -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_loss_scaler_restore(b, "{"), {"loss scale: state"}));
}

}  // namespace
}  // namespace st::test
