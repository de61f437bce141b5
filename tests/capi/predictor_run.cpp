// Forward passes of a model: any number of rows, the requested outputs, the weights of one whole step.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

class PredictorRun : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out()))); }
  /// The sine net's outputs with the predictor's weights.
  static std::vector<float> predict(st_predictor* by, const std::vector<float>& x) {
    std::vector<float> y(x.size(), -99);
    EXPECT_TRUE(works(status_of(by, x, y)));
    return y;
  }
  static st_status status_of(st_predictor* by, const std::vector<float>& x, std::vector<float>& y) {
    const int64_t dims[] = {static_cast<int64_t>(x.size()), 1};
    const auto bytes = static_cast<int64_t>(x.size() * 4);
    const st_named_view in = {"x", {ST_F32, 2, dims, nullptr, const_cast<float*>(x.data()), bytes}};
    const st_named_view out = {"prediction", {ST_F32, 2, dims, nullptr, y.data(), bytes}};
    return st_predictor_run(by, 1, &in, 1, &out);
  }
  std::vector<float> parameter(const char* name, std::vector<int64_t> dims) const {
    std::vector<float> values(16);
    const auto count = static_cast<int64_t>(dims.size() == 1 ? dims[0] : dims[0] * dims[1]);
    const st_view view = {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), count * 4};
    EXPECT_TRUE(works(st_model_get(run.model, name, &view)));
    return values;
  }
  SineRun run;
  HeldPredictor predictor;
};

// Computed in double: gelu by tanh as in the op's definition, or by erf; the two differ by less than 1e-3.
TEST_F(PredictorRun, IsTheModelsForwardPass) {
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(st_predictor_refresh(predictor)));
  const auto w1 = parameter("first.weight", {1, 16}), b1 = parameter("first.bias", {16});
  const auto w2 = parameter("second.weight", {16, 1}), b2 = parameter("second.bias", {1});
  for (const float x : {-2.0F, 0.0F, 0.7F}) {
    double wanted = b2[0];
    for (size_t i = 0; i < 16; ++i) {
      const double h = static_cast<double>(x) * w1[i] + b1[i];
      wanted += 0.5 * h * (1 + std::erf(h / std::sqrt(2.0))) * w2[i];
    }
    EXPECT_NEAR(predict(predictor, {x})[0], wanted, 5e-3) << x;
  }
}

TEST_F(PredictorRun, GivesEachRowTheSameAnswerInAnyCompany) {
  const std::vector<float> x = {-3, -1, 0, 0.5F, 2};
  const auto together = predict(predictor, x);
  for (size_t rows = 1; rows <= 5; ++rows) {
    const auto some = predict(predictor, {x.begin(), x.begin() + static_cast<ptrdiff_t>(rows)});
    for (size_t i = 0; i < rows; ++i) EXPECT_NEAR(some[i], together[i], 1e-6) << rows << " rows";  // other kernels may serve other sizes
  }
  EXPECT_EQ(predict(predictor, x), together);
}

TEST_F(PredictorRun, KeepsItsSnapshotUntilRefreshed) {
  const std::vector<float> x = {1, 2};
  const auto before = predict(predictor, x);
  HeldPredictor shared;
  auto options = filled(st_predictor_options_init);
  options.shared = 1;
  ASSERT_TRUE(works(st_predictor_create(run.model, &options, shared.out())));
  std::vector<float> last = before;
  for (int i = 0; i < 5; ++i) {  // each refresh reuses the memory of the one before the last
    ASSERT_TRUE(works(run.step()));
    EXPECT_EQ(predict(predictor, x), last);
    EXPECT_NE(predict(shared, x), last) << "shared weights are the current ones";
    ASSERT_TRUE(works(st_predictor_refresh(predictor)));
    EXPECT_NE(predict(predictor, x), last);
    last = predict(predictor, x);
    EXPECT_EQ(predict(shared, x), last);
  }
}

// Strides of 0: shared_views.cpp, wrong_views.cpp.
TEST_F(PredictorRun, TakesAndFillsViewsWithStrides) {
  float table[] = {1, 0, 0, 2, 0, 0};  // x in column 0, y goes to column 2
  const int64_t dims[] = {2, 1}, strides[] = {3, 1};
  const st_named_view in = {"x", {ST_F32, 2, dims, strides, table, sizeof table}};
  const st_named_view out = {"prediction", {ST_F32, 2, dims, strides, table + 2, 16}};
  ASSERT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out)));
  const auto wanted = predict(predictor, {1, 2});
  EXPECT_EQ(table[2], wanted[0]);
  EXPECT_EQ(table[5], wanted[1]);
  EXPECT_EQ(table[1] + table[4], 0);
}

TEST_F(PredictorRun, AskedForWhatCannotBeItSaysSo) {
  float x[] = {1, 2, 3, 4}, y[] = {9, 9, 9, 9};
  const int64_t two[] = {2, 1}, four[] = {4, 1}, none[] = {0, 1};
  const auto in = [&](const char* name, const int64_t* dims) { return st_named_view{name, {ST_F32, 2, dims, nullptr, x, 16}}; };
  const auto out = [&](const char* name, const int64_t* dims) { return st_named_view{name, {ST_F32, 2, dims, nullptr, y, 16}}; };
  const auto expect_refused = [&](std::vector<st_named_view> inputs, std::vector<st_named_view> outputs, st_status status,
                                  std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(status,
                      st_predictor_run(predictor, static_cast<int64_t>(inputs.size()), inputs.data(), static_cast<int64_t>(outputs.size()),
                                       outputs.data()),
                      words));
  };
  expect_refused({in("x", two)}, {out("predictoin", two)}, ST_NOT_FOUND, {"predictoin", "prediction"});
  expect_refused({in("xx", two)}, {out("prediction", two)}, ST_NOT_FOUND, {"\"xx\"", "\"x\""});
  expect_refused({}, {out("prediction", two)}, ST_INVALID_ARGUMENT, {"prediction", "\"x\"", "not given"});
  expect_refused({in("y", two)}, {out("prediction", two)}, ST_INVALID_ARGUMENT, {"\"x\"", "not given"});
  expect_refused({in("x", two)}, {}, ST_INVALID_ARGUMENT, {"at least one output"});
  expect_refused({in("x", two)}, {out("prediction", four)}, ST_INVALID_ARGUMENT, {"prediction", "4 rows", "2"});
  expect_refused({in("x", two), in("y", four)}, {out("prediction", two)}, ST_INVALID_ARGUMENT, {"\"y\"", "4 rows", "\"x\"", "2"});
  expect_refused({in("x", two), in("x", two)}, {out("prediction", two)}, ST_INVALID_ARGUMENT, {"\"x\"", "twice"});
  expect_refused({in("x", two)}, {out("prediction", two), out("prediction", two)}, ST_INVALID_ARGUMENT, {"prediction", "twice"});
  expect_refused({in("x", none)}, {out("prediction", none)}, ST_INVALID_ARGUMENT, {"0 rows"});
  expect_refused({in(nullptr, two)}, {out("prediction", two)}, ST_INVALID_ARGUMENT, {"no name"});
  x[1] = std::numeric_limits<float>::quiet_NaN();
  expect_refused({in("x", two)}, {out("prediction", two)}, ST_NOT_FINITE, {"\"x\"", "row 1"});
  const int64_t far[] = {int64_t{1} << 39, 1};
  const int64_t claimed = int64_t{1} << 41;
  const st_named_view lying = {"x", {ST_F32, 2, far, nullptr, x, claimed}}, room = {"prediction", {ST_F32, 2, far, nullptr, y, claimed}};
  expect_refused({lying}, {room}, ST_OUT_OF_MEMORY, {"predict"});
  for (const float v : y) EXPECT_EQ(v, 9) << "a refused run wrote something";
  x[1] = 2;
  const st_named_view given[] = {in("x", two), in("y", two)}, wanted = out("prediction", two);
  EXPECT_TRUE(works(st_predictor_run(predictor, 2, given, 1, &wanted))) << "an unused input is accepted";
  auto options = filled(st_predictor_options_init);
  EXPECT_EQ(options.threads, 1);
  st_predictor* refused = nullptr;
  options.threads = 0;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_predictor_create(run.model, &options, &refused), {"threads must be 1 to 4096, got 0"}));
  EXPECT_EQ(refused, nullptr);
}

/// A context whose parallel-for runs an action in the middle of a call.
struct Middle {
  Middle() : options(filled(st_context_options_init)) {
    options.threads = 2;
    options.parallel = [](void* user, int64_t n, st_task_fn task, void* arg) {
      auto& self = *static_cast<Middle*>(user);
      if (self.act) std::exchange(self.act, {})();
      for (int64_t i = 0; i < n; ++i) task(arg, i);
    };
    options.parallel_user = this;
  }
  st_context_options options;
  std::function<void()> act;
};

TEST(PredictorInUse, IsNotDestroyedUnderARun) {
  Middle middle;
  const auto context = hold<HeldContext>(st_context_create, &middle.options);
  const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", R"({"layers": 1, "width": 64, "heads": 2, "context": 32})", 1);
  auto options = filled(st_predictor_options_init);
  options.threads = 2;
  const auto predictor = hold<HeldPredictor>(st_predictor_create, model, &options);
  std::vector<int32_t> tokens(4 * 32, 5);
  std::vector<float> logits(4 * 32 * 256);
  const int64_t in_dims[] = {4, 32}, out_dims[] = {4, 32, 256};
  const st_named_view in = {"tokens", {ST_I32, 2, in_dims, nullptr, tokens.data(), 4 * 32 * 4}};
  const st_named_view out = {"logits", {ST_F32, 3, out_dims, nullptr, logits.data(), 4 * 32 * 256 * 4}};
  bool asked = false;
  middle.act = [&] {
    asked = true;
    EXPECT_TRUE(fails(ST_BUSY, st_predictor_destroy(predictor), {"st_predictor_destroy"}));
    EXPECT_TRUE(works(st_predictor_refresh(predictor))) << "a run does not block a refresh";
    EXPECT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out))) << "nor another run";
  };
  ASSERT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out)));
  EXPECT_TRUE(asked) << "the run never asked the host for threads";

  const auto inside = [](void* user, int32_t) {
    EXPECT_TRUE(fails(ST_BUSY, st_predictor_destroy(static_cast<st_predictor*>(user))));
    EXPECT_TRUE(works(st_predictor_refresh(static_cast<st_predictor*>(user))));
    return st_status{ST_CANCELLED};
  };
  EXPECT_TRUE(works(st_predictor_generate(predictor, 4, tokens.data(), nullptr, inside, static_cast<st_predictor*>(predictor))));
}

TEST(PredictorInUse, SharedWeightsAreBusyWhileTheyAreWritten) {
  Middle middle;
  HeldPredictor shared;
  const auto context = hold<HeldContext>(st_context_create, &middle.options);
  // Large enough that the update of one weight, and each product, has more than one task.
  const auto model = hold<HeldModel>(st_model_builtin, context, "mlp", R"({"inputs": 600, "hidden": [200], "outputs": 1})", 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 3})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  auto options = filled(st_predictor_options_init);
  options.shared = 1;
  ASSERT_TRUE(works(st_predictor_create(model, &options, shared.out())));
  std::vector<float> x(3 * 600, 0.5F), y(3, 1), made(3);
  const int64_t in_dims[] = {3, 600}, out_dims[] = {3, 1};
  const st_named_view batch[] = {{"x", {ST_F32, 2, in_dims, nullptr, x.data(), 3 * 600 * 4}},
                                 {"y", {ST_F32, 2, out_dims, nullptr, y.data(), 12}}};
  const st_named_view out = {"prediction", {ST_F32, 2, out_dims, nullptr, made.data(), 12}};
  int64_t busy = 0, free = 0;
  std::function<void()> ask = [&] {  // in every parallel section of the step: only during the update may it be BUSY
    const st_status status = st_predictor_run(shared, 1, batch, 1, &out);
    EXPECT_TRUE(status == ST_OK || (status == ST_BUSY && std::string(st_last_error()).find("writing the weights") != std::string::npos));
    ++(status == ST_OK ? free : busy);
    middle.act = ask;
  };
  middle.act = ask;
  ASSERT_TRUE(works(st_trainer_step(trainer, 2, batch, nullptr)));
  middle.act = {};
  EXPECT_GT(busy, 0);
  EXPECT_GT(free, 0);
  EXPECT_TRUE(works(st_predictor_run(shared, 1, batch, 1, &out)));
}

}  // namespace
