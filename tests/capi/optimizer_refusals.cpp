// Optimizers alone: errors name what is wrong, and nothing is written.
#include <limits>
#include <vector>

#include "host_arrays.h"
#include "small_run.h"

namespace st::test {
namespace {

class COptimizerRefusals : public testing::Test {
 protected:
  testing::AssertionResult refused(const char* json, const std::vector<st_named_view>& parameters,
                                   std::initializer_list<std::string_view> words, st_status wanted = ST_INVALID_ARGUMENT) {
    HeldOptimizer made;
    return fails(wanted, st_optimizer_create(context_, json, std::ssize(parameters), parameters.data(), made.out()), words);
  }
  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
};

TEST_F(COptimizerRefusals, KeysAndValues) {
  FloatArray w{{1, 2}};
  const st_named_view p = {"w", w.view()};
  EXPECT_TRUE(refused(R"({"optimiser": "sgd"})", {p}, {"optimizer: unknown key \"optimiser\"", "did you mean \"optimizer\""}));
  EXPECT_TRUE(refused(R"({"warmup": 3})", {p}, {"optimizer: unknown key \"warmup\""}));
  EXPECT_TRUE(refused(R"({"optimizer": "adamv"})", {p}, {"optimizer: ", "adamv", "adamw"}));
  EXPECT_TRUE(refused(R"({"beta1": 1})", {p}, {"optimizer: beta1 must be a number in [0, 1), got 1"}));
  EXPECT_TRUE(refused(R"({"weight_decay": -0.1})", {p}, {"weight_decay", "got -0.1"}));
  EXPECT_TRUE(refused(R"({"clip": -1})", {p}, {"clip", "[0, inf), got -1"}));
  EXPECT_TRUE(refused(R"({"lr": "fast"})", {p}, {"lr must be a number", "got \"fast\""}));
  EXPECT_TRUE(refused(R"({"optimizer": "sgd", "nesterov": true})", {p}, {"nesterov needs a momentum above 0"}));
  EXPECT_TRUE(refused("[1]", {p}, {"must be a JSON object"}));
  EXPECT_TRUE(refused("{", {p}, {"optimizer"}));
}

TEST_F(COptimizerRefusals, Groups) {
  FloatArray w{{1, 2}};
  const st_named_view p = {"w", w.view()};
  EXPECT_TRUE(refused(R"({"groups": [{"pattern": "*.bias", "lr_scale": 2}]})", {p}, {"no parameter matches", "*.bias", "w"}));
  EXPECT_TRUE(refused(R"({"groups": [{"pattern": "w", "frozen": true}]})", {p}, {"every parameter is frozen"}));
  EXPECT_TRUE(refused(R"({"groups": [{"pattern": "w", "optimizer": "addam"}]})", {p}, {"addam", "adam"}));
}

TEST_F(COptimizerRefusals, Parameters) {
  FloatArray w{{1, 2, 3, 4}}, v{{1}};
  const int64_t two[] = {2}, gap[] = {2};
  uint16_t half[] = {0, 0};
  const st_named_view p = {"w", w.view()};
  EXPECT_TRUE(refused(nullptr, {}, {"n is 0"}));
  EXPECT_TRUE(refused(nullptr, {p, {"w", v.view()}}, {"two parameters are named \"w\""}));
  EXPECT_TRUE(refused(nullptr, {p, {"v", {ST_F32, 1, two, nullptr, w.values.data() + 2, 8}}}, {"\"w\"", "\"v\"", "share memory"}));
  EXPECT_TRUE(refused(nullptr, {{"h", {ST_BF16, 1, two, nullptr, half, 4}}}, {"\"h\"", "got bf16", "f32 master"}));
  EXPECT_TRUE(refused(nullptr, {{"g", {ST_F32, 1, two, gap, w.values.data(), 16}}}, {"g must be row-major without gaps"}));
  EXPECT_TRUE(refused(nullptr, {{"a", {ST_F32, 1, two, nullptr, reinterpret_cast<char*>(w.values.data()) + 1, 8}}},
                      {"a must be row-major without gaps", "aligned"}));
  EXPECT_TRUE(refused(nullptr, {{"s", {ST_F32, 1, two, nullptr, w.values.data(), 4}}}, {"\"s\"", "needs 8 bytes", "has 4"}));
  EXPECT_TRUE(refused(nullptr, {{"n", {ST_F32, 1, two, nullptr, nullptr, 8}}}, {"\"n\" has no data"}));
}

TEST_F(COptimizerRefusals, DoublesInEightBits) {
  std::vector<double> w(5000);
  const int64_t dims[] = {5000};
  EXPECT_TRUE(refused(R"({"optimizer": "adamw-8bit"})", {{"d", {ST_F64, 1, dims, nullptr, w.data(), 40000}}}, {"\"d\" is f64", "adamw"},
                      ST_UNSUPPORTED));
}

TEST_F(COptimizerRefusals, GradientsAndNothingIsWritten) {
  FloatArray w{{1, 2}}, v{{3, 4}}, g{{1, 1}}, longer{{1, 1, 1}};
  const auto w_before = w.values, v_before = v.values;
  const st_named_view parameters[] = {{"w", w.view()}, {"v", v.view()}};
  const auto o = hold<HeldOptimizer>(st_optimizer_create, context_, nullptr, 2, parameters);
  double doubles[2] = {1, 1};
  int32_t whole[2] = {1, 1};
  const int64_t dims[] = {2}, gap[] = {2};
  float spaced[3] = {1, 1, 1};
  const auto refused_with = [&](st_view second, std::initializer_list<std::string_view> words) {
    const st_view gradients[] = {g.view(), second};
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step(o, 2, gradients, nullptr), words));
    EXPECT_EQ(w.values, w_before);
    EXPECT_EQ(v.values, v_before);
  };
  refused_with(longer.view(), {"\"v\" has shape [2]", "its gradient [3]"});
  refused_with({ST_F64, 1, dims, nullptr, doubles, 16}, {"\"v\" is f32", "gradient is f64"});
  refused_with({ST_I32, 1, dims, nullptr, whole, 8}, {"\"v\" is f32", "gradient is i32"});
  refused_with({ST_F32, 1, dims, gap, spaced, 12}, {"gradient of v must be row-major without gaps"});
  refused_with({ST_F32, 1, dims, nullptr, spaced, 4}, {"gradient of v", "needs 8 bytes"});
  refused_with({ST_F32, 1, dims, nullptr, nullptr, 8}, {"gradient of v", "no data"});
  refused_with(g.view(), {"gradient of w", "gradient of v", "share memory"});
  refused_with(w.view(), {"\"w\"", "gradient of v", "share memory"});
  const st_view one = g.view();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step(o, 1, &one, nullptr), {"n is 1", "2 parameters"}));
  auto report = filled(st_optimizer_report_init);
  report.struct_size = 4;
  FloatArray h{{1, 1}};
  const st_view good[] = {g.view(), h.view()};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step(o, 2, good, &report), {"struct_size is 4"}));
  EXPECT_EQ(w.values, w_before);
}

TEST_F(COptimizerRefusals, CopiesAndNothingIsWritten) {
  FloatArray w{{1, 2}}, v{{3, 4}}, g{{1, 1}}, h{{1, 1}};
  double d[2] = {5, 6};
  const int64_t dims[] = {2}, gap[] = {2}, three[] = {3};
  const st_named_view parameters[] = {{"w", w.view()}, {"v", v.view()}, {"d", {ST_F64, 1, dims, nullptr, d, 16}}};
  const auto o = hold<HeldOptimizer>(st_optimizer_create, context_, nullptr, 3, parameters);
  std::vector<uint16_t> half(8, 7);
  const std::vector<uint16_t> untouched = half;
  const st_view good = {ST_F16, 1, dims, nullptr, half.data(), 4};
  const auto refused_with = [&](const st_view& second, const st_view& third, std::initializer_list<std::string_view> words) {
    const st_view copies[] = {good, second, third};
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_keep_copies(o, 3, copies), words));
    EXPECT_EQ(half, untouched);
  };
  refused_with({ST_F32, 1, dims, nullptr, h.values.data(), 8}, {}, {"\"v\" is f32", "its copy is f32", "bf16 or f16"});
  refused_with({ST_BF16, 1, three, nullptr, half.data() + 2, 6}, {}, {"\"v\" has shape [2]", "its copy [3]"});
  refused_with({ST_BF16, 1, dims, gap, half.data() + 2, 6}, {}, {"copy of v must be row-major without gaps"});
  refused_with({ST_BF16, 1, dims, nullptr, half.data() + 2, 3}, {}, {"copy of v", "needs 4 bytes"});
  refused_with({ST_BF16, 1, dims, nullptr, half.data() + 1, 4}, {}, {"copy of w", "copy of v", "share memory"});
  refused_with({ST_BF16, 1, dims, nullptr, w.values.data(), 4}, {}, {"\"w\"", "copy of v", "share memory"});
  refused_with({}, {ST_BF16, 1, dims, nullptr, half.data() + 2, 4}, {"\"d\" is f64", "its copy is bf16"});
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_keep_copies(o, 1, &good), {"n is 1", "3 parameters"}));

  const st_view copies[] = {good, {}, {}};
  ASSERT_TRUE(works(st_optimizer_keep_copies(o, 3, copies)));
  EXPECT_EQ(half[0], 0x3C00);
  double e[2] = {1, 1};
  const st_view over_the_copy[] = {g.view(), {ST_BF16, 1, dims, nullptr, half.data() + 1, 4}, {ST_F64, 1, dims, nullptr, e, 16}};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step(o, 3, over_the_copy, nullptr), {"copy of w", "gradient of v", "share memory"}));
  EXPECT_EQ(half[0], 0x3C00);
  EXPECT_EQ(w.values, (std::vector<float>{1, 2}));
}

TEST_F(COptimizerRefusals, WhatIsFixedAndAStepThatIsNone) {
  FloatArray w{{1, 2}}, g{{1, 1}};
  const st_named_view p = {"w", w.view()};
  const auto o = hold<HeldOptimizer>(st_optimizer_create, context_, nullptr, 1, &p);
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_optimizer_set(o, "beta1", "0.5"), {"beta1 is fixed", "lr can be set"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_set(o, "l", "0.5"), {"unknown key \"l\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_set(o, "lr", "-1"), {"lr must be a number in [0, inf), got -1"}));
  int64_t n = 0;
  const st_named_view* state = nullptr;
  ASSERT_TRUE(works(st_optimizer_state_views(o, &n, &state)));
  *static_cast<int64_t*>(state[0].view.data) = -3;
  const st_view gradient = g.view();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_optimizer_step(o, 1, &gradient, nullptr), {"step, the number of updates so far", "got -3"}));
  EXPECT_EQ(w.values, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace st::test
