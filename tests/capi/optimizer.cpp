// Optimizers alone, over host arrays. That their bits equal the trainer's is tested in tests/equivalence.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "host_arrays.h"
#include "small_run.h"

namespace st::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class COptimizer : public testing::Test {
 protected:
  HeldOptimizer optimizer(const char* json, const std::vector<st_named_view>& parameters) {
    return hold<HeldOptimizer>(st_optimizer_create, context_, json, std::ssize(parameters), parameters.data());
  }
  static st_optimizer_report step(st_optimizer* o, const std::vector<st_view>& gradients) {
    const auto report = filled(st_optimizer_report_init, st_optimizer_step, o, std::ssize(gradients), gradients.data());
    return report;
  }
  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
};

struct State {
  int64_t n = 0;
  const st_named_view* views = nullptr;

  explicit State(st_optimizer* o) { EXPECT_TRUE(works(st_optimizer_state_views(o, &n, &views))); }
  std::string names() const {
    std::string all;
    for (int64_t i = 0; i < n; ++i) all += std::string(i > 0 ? " " : "") + views[i].name;
    return all;
  }
};

// torch.optim.SGD with momentum: v = 0.5 v + g, p -= lr v; all numbers are exact.
TEST_F(COptimizer, DescendsAndReports) {
  FloatArray w{{1, 2}}, g{{3, -4}};
  const auto o = optimizer(R"({"optimizer": "sgd", "momentum": 0.5, "lr": 0.25})", {{"w", w.view()}});
  auto report = step(o, {g.view()});
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.lr, 0.25);
  EXPECT_EQ(report.norm, 5);
  EXPECT_EQ(w.values, (std::vector<float>{0.25F, 3}));
  ASSERT_TRUE(works(st_optimizer_set(o, "lr", "0.5")));
  report = step(o, {g.view()});
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.lr, 0.5);
  EXPECT_EQ(w.values, (std::vector<float>{0.25F - 0.5F * 4.5F, 3 + 0.5F * 6}));
  EXPECT_EQ(g.values, (std::vector<float>{3, -4})) << "gradients are only read";
}

// st_optimizer_step_scaled on scaled gradients, compared with unscale and step, over 30 steps of which two overflow.
TEST_F(COptimizer, AScaledStepHasTheBitsOfUnscaleAndStep) {
  for (const char* json : {R"({"clip": 1})", R"({"optimizer": "lion"})", R"({"optimizer": "sgd", "lr": 0.1, "clip_value": 0.01})"}) {
    FloatArray w{{1, 2, -3}}, same{{1, 2, -3}};
    const auto at_once = optimizer(json, {{"w", w.view()}}), in_parts = optimizer(json, {{"w", same.view()}});
    const auto scaler = hold<HeldLossScaler>(st_loss_scaler_create, context_, nullptr);
    const auto other = hold<HeldLossScaler>(st_loss_scaler_create, context_, nullptr);
    for (int k = 0; k < 30; ++k) {
      double scale = 0, scale_of_other = 0;
      int32_t skipped = -1, skipped_other = -1, run = -1;
      ASSERT_TRUE(works(st_loss_scaler_scale(scaler, &scale)));
      ASSERT_TRUE(works(st_loss_scaler_scale(other, &scale_of_other)));
      ASSERT_EQ(scale, scale_of_other) << k;
      FloatArray g{{0.3F, -0.4F, 0.007F * static_cast<float>(k)}};
      for (float& x : g.values) x *= static_cast<float>(scale);
      if (k == 4 || k == 20) g.values[1] = kInfinity;
      const std::vector<float> given = g.values;
      const st_view view = g.view();
      auto report = filled(st_optimizer_report_init), of_other = report;
      ASSERT_TRUE(works(st_optimizer_step_scaled(at_once, scaler, 1, &view, &report)));
      EXPECT_EQ(g.values, given) << "gradients are only read";
      ASSERT_TRUE(works(st_loss_scaler_unscale(other, 1, &view, &run)));
      ASSERT_TRUE(works(st_loss_scaler_step(other, &run)));
      if (run != 0) of_other = step(in_parts, {view});
      ASSERT_TRUE(works(st_loss_scaler_update(scaler, &skipped)));
      ASSERT_TRUE(works(st_loss_scaler_update(other, &skipped_other)));
      EXPECT_EQ(skipped, k == 4 || k == 20 ? 1 : 0);
      EXPECT_EQ(skipped, skipped_other);
      EXPECT_EQ(report.skipped, skipped);
      if (skipped == 0) {
        EXPECT_EQ(report.step, of_other.step);
        EXPECT_EQ(report.norm, of_other.norm);
      }
      ASSERT_EQ(w.values, same.values) << json << ", step " << k;
    }
  }
}

TEST_F(COptimizer, AScaledStepKeepsTheScalersOrder) {
  FloatArray w{{1, 2}}, g{{1, 1}}, wrong{{1, 1, 1}};
  const st_view view = g.view(), refused = wrong.view();
  const auto o = optimizer(nullptr, {{"w", w.view()}});
  const auto scaler = hold<HeldLossScaler>(st_loss_scaler_create, context_, nullptr);
  double scale = 0;
  int32_t flag = 0;
  const auto before = w.values;
  EXPECT_TRUE(
      fails(ST_WRONG_STATE, st_optimizer_step_scaled(o, scaler, 1, &view, nullptr), {"scale, backward, unscale, clip, step, update"}));
  ASSERT_TRUE(works(st_loss_scaler_scale(scaler, &scale)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step_scaled(o, scaler, 1, &refused, nullptr), {"w", "[2]", "[3]"}));
  EXPECT_EQ(w.values, before);
  ASSERT_TRUE(works(st_optimizer_step_scaled(o, scaler, 1, &view, nullptr))) << "unscale must still come first";
  EXPECT_NE(w.values, before);
  const auto after = w.values;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_optimizer_step_scaled(o, scaler, 1, &view, nullptr), {"out of order", "last call was step"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_loss_scaler_step(scaler, &flag), {"out of order"}));
  EXPECT_EQ(w.values, after);
  ASSERT_TRUE(works(st_loss_scaler_update(scaler, nullptr)));
}

TEST_F(COptimizer, NamesWhatHasNoNameByItsPlace) {
  FloatArray a{{1}}, b{{2}}, g{{1}};
  const auto o = optimizer(R"({"optimizer": "lion", "lr": 0.5, "groups": [{"pattern": "param_0", "frozen": true}]})",
                           {{nullptr, a.view()}, {nullptr, b.view()}});
  EXPECT_EQ(State(o).names(), "step moment1.param_1");
  st_view nothing{};
  EXPECT_EQ(step(o, {nothing, g.view()}).norm, 1) << "a frozen parameter's gradient is not read";
  EXPECT_EQ(a.values[0], 1);
  EXPECT_EQ(b.values[0], 1.5F);
}

TEST_F(COptimizer, NamesOfTheHostMeetNoneOfTheLibrary) {
  std::vector<FloatArray> weights(6, FloatArray{{1}});
  const char* names[] = {"rates", "factor", "gradient.rates", "moment1.rates", "0", "unit"};
  std::vector<st_named_view> parameters;
  std::vector<st_view> gradients;
  FloatArray g{{1}};
  std::vector<FloatArray> all(6, g);
  for (size_t i = 0; i < 6; ++i) {
    parameters.push_back({names[i], weights[i].view()});
    gradients.push_back(all[i].view());
  }
  const auto o = optimizer(nullptr, parameters);
  EXPECT_EQ(step(o, gradients).norm, std::sqrt(6.0));
  EXPECT_EQ(State(o).names().find("step moment1.rates moment2.rates moment1.factor"), 0U);
  for (const FloatArray& w : weights) EXPECT_EQ(w.values[0], weights[0].values[0]);
}

TEST_F(COptimizer, PiecesOfOneFlatBufferAreItsParameters) {
  std::vector<float> flat = {1, 2, 3, 4, 5};
  const int64_t two[] = {2}, three[] = {3};
  FloatArray g{{1, 1}}, h{{1, 1, 1}};
  const auto o =
      optimizer(R"({"optimizer": "sgd", "lr": 1, "groups": [{"pattern": "bias", "lr_scale": 2}]})",
                {{"weight", {ST_F32, 1, two, nullptr, flat.data(), 8}}, {"bias", {ST_F32, 1, three, nullptr, flat.data() + 2, 12}}});
  step(o, {g.view(), h.view()});
  EXPECT_EQ(flat, (std::vector<float>{0, 1, 1, 2, 3}));
}

// Every optimizer: a new one, loaded with a copy of the state, continues with the same bits.
TEST_F(COptimizer, GoesOnFromItsState) {
  const int64_t dims[] = {70, 66};  // enough for adamw-8bit to code the moments
  constexpr size_t kElements = 70 * 66;
  const auto view_of = [&](std::vector<float>& values) { return st_view{ST_F32, 2, dims, nullptr, values.data(), kElements * 4}; };
  for (const std::string name : {"adamw", "adam", "adamw-8bit", "sgd", "adafactor", "lion", "rmsprop", "adagrad", "muon"}) {
    const std::string json = R"({"optimizer": ")" + name + R"(", "momentum": 0.5, "clip": 1})";
    std::vector<float> weight(kElements), gradient(kElements);
    for (size_t i = 0; i < kElements; ++i) weight[i] = std::sin(static_cast<float>(i)), gradient[i] = std::cos(static_cast<float>(3 * i));
    const auto o = optimizer(json.c_str(), {{"w", view_of(weight)}});
    for (int i = 0; i < 3; ++i) step(o, {view_of(gradient)});

    std::vector<float> copy = weight;
    const auto other = optimizer(json.c_str(), {{"w", view_of(copy)}});
    const State from(o), to(other);
    ASSERT_EQ(from.names(), to.names());
    EXPECT_GT(from.n, 1) << name;
    for (int64_t i = 0; i < from.n; ++i) {
      ASSERT_EQ(from.views[i].view.bytes, to.views[i].view.bytes);
      std::memcpy(to.views[i].view.data, from.views[i].view.data, static_cast<size_t>(from.views[i].view.bytes));
    }
    for (float& g : gradient) g *= 0.5F;
    EXPECT_EQ(step(o, {view_of(gradient)}).step, 4);
    EXPECT_EQ(step(other, {view_of(gradient)}).step, 4);
    EXPECT_EQ(std::memcmp(copy.data(), weight.data(), kElements * 4), 0) << name;
  }
}

TEST_F(COptimizer, TheStateSaysItsTypesAndShapes) {
  FloatArray w{{1, 2, 3}};
  const auto o = optimizer(nullptr, {{"w", w.view()}});
  const State state(o);
  ASSERT_EQ(state.names(), "step moment1.w moment2.w");
  EXPECT_EQ(state.views[0].view.dtype, ST_I64);
  EXPECT_EQ(state.views[0].view.rank, 0);
  EXPECT_EQ(state.views[0].view.bytes, 8);
  EXPECT_EQ(state.views[2].view.dtype, ST_F32);
  EXPECT_EQ(state.views[2].view.rank, 1);
  EXPECT_EQ(state.views[2].view.dims[0], 3);
  EXPECT_EQ(state.views[2].view.bytes, 12);
}

TEST_F(COptimizer, KeepsItsContextAndCountsItsMemory) {
  auto before = filled(st_memory_stats_init), with = before;
  ASSERT_TRUE(works(st_context_memory(context_, &before)));
  FloatArray w{std::vector<float>(100000)}, g{std::vector<float>(100000, 1)};
  auto o = optimizer(nullptr, {{"w", w.view()}});
  ASSERT_TRUE(works(st_context_memory(context_, &with)));
  EXPECT_GE(with.allocated_bytes - before.allocated_bytes, 800000) << "two moments";
  EXPECT_LE(with.allocated_bytes - before.allocated_bytes, 900000) << "and no copy of the parameter or its gradient";
  context_.reset();
  EXPECT_EQ(step(o, {g.view()}).step, 1);
}

TEST(COptimizerMemory, IsRefusedWithTheNeed) {
  auto options = filled(st_context_options_init);
  options.memory_limit = 1 << 20;
  const auto context = hold<HeldContext>(st_context_create, &options);
  FloatArray w{std::vector<float>(200000)};
  const st_named_view parameter = {"w", w.view()};
  HeldOptimizer o;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_optimizer_create(context, nullptr, 1, &parameter, o.out()), {"optimizer", "1600", "bytes"}));
}

}  // namespace
}  // namespace st::test
