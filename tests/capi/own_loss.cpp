// A loss that the host computes: forward, backward with gradients of the outputs, apply.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "small_run.h"

namespace {

using namespace st::test;

/// One micro-batch, with the gradient of scale * sum (prediction - y)^2 computed by the host.
void run_pair(SineRun& run, int64_t k, int64_t inputs, double scale) {
  SineHalf half(run, k);
  int64_t m = 0;
  const st_named_view* outputs = nullptr;
  ASSERT_TRUE(works(st_trainer_forward(run.trainer, inputs, half.views, &m, &outputs)));
  ASSERT_EQ(m, 1);
  ASSERT_STREQ(outputs[0].name, "prediction");
  ASSERT_EQ(outputs[0].view.rank, 2);
  ASSERT_EQ(outputs[0].view.dims[0], 4);
  ASSERT_EQ(outputs[0].view.bytes, 16);
  const auto* prediction = static_cast<const float*>(outputs[0].view.data);
  float gradient[4];
  for (int i = 0; i < 4; ++i) gradient[i] = static_cast<float>(scale * 2 * (static_cast<double>(prediction[i]) - half.y[i]));
  const st_named_view by[] = {{"prediction", {ST_F32, 2, half.dims, nullptr, gradient, sizeof gradient}}};
  ASSERT_TRUE(works(st_trainer_backward(run.trainer, 1, by)));
}

constexpr const char* kOne = R"({"batch": 4, "warmup": 0})";
constexpr const char* kTwo = R"({"batch": 4, "accumulate": 2, "warmup": 0})";

st_status step_on_half(SineRun& run, int64_t k, st_step_report* report = nullptr) {
  SineHalf half(run, k);
  return st_trainer_step(run.trainer, 2, half.views, report);
}

// Mean of 4 rows: the scale 1/4 is a power of two, so every bit must agree.
TEST(OwnLoss, AHostsMseIsTheGraphsOwnBitwise) {
  SineRun host(kOne), own(kOne);
  auto mine = filled(st_step_report_init), theirs = filled(st_step_report_init);
  for (int i = 0; i < 5; ++i) {
    run_pair(host, i % 2, 1, 0.25);
    ASSERT_TRUE(works(st_trainer_apply(host.trainer, &mine)));
    ASSERT_TRUE(works(step_on_half(own, i % 2, &theirs)));
    EXPECT_EQ(host.digest(), own.digest());
    EXPECT_TRUE(std::isnan(mine.loss));
    EXPECT_EQ(mine.step, theirs.step);
    EXPECT_EQ(mine.grad_norm, theirs.grad_norm);
    EXPECT_EQ(mine.tokens, theirs.tokens);
  }
}

TEST(OwnLoss, TwoPairsAreAnAccumulationOfTwoBitwise) {
  SineRun host(kOne), own(kTwo);
  for (int i = 0; i < 3; ++i) {
    for (const int64_t k : {0, 1}) run_pair(host, k, 1, 0.125);
    ASSERT_TRUE(works(st_trainer_apply(host.trainer, nullptr)));
    ASSERT_TRUE(works(own.step()));
    EXPECT_EQ(host.digest(), own.digest());
  }
}

TEST(OwnLoss, TargetsThatTheHostDoesNotNeedMayBeGivenAllTheSame) {
  SineRun with(kOne), without(kOne);
  run_pair(with, 0, 2, 0.25);
  run_pair(without, 0, 1, 0.25);
  for (SineRun* run : {&with, &without}) ASSERT_TRUE(works(st_trainer_apply(run->trainer, nullptr)));
  EXPECT_EQ(with.digest(), without.digest());
}

TEST(OwnLoss, TheGraphsOwnLossThroughBackwardIsAStep) {
  SineRun pairs(kTwo), own(kTwo);
  auto mine = filled(st_step_report_init), theirs = filled(st_step_report_init);
  for (int i = 0; i < 3; ++i) {
    for (const int64_t k : {0, 1}) {
      SineHalf half(pairs, k);
      ASSERT_TRUE(works(forward(pairs.trainer, 2, half.views)));
      ASSERT_TRUE(works(forward(pairs.trainer, 2, half.views))) << "it replaces the previous one";
      ASSERT_TRUE(works(st_trainer_backward(pairs.trainer, 0, nullptr)));
    }
    ASSERT_TRUE(works(st_trainer_apply(pairs.trainer, &mine)));
    ASSERT_TRUE(works(own.step(&theirs)));
    EXPECT_EQ(pairs.digest(), own.digest());
    EXPECT_EQ(mine.loss, theirs.loss);
    EXPECT_EQ(mine.grad_norm, theirs.grad_norm);
  }
}

TEST(OwnLoss, StepsOfBothKindsShareTheMoments) {
  SineRun mixed(kOne), own(kOne);
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0) {
      ASSERT_TRUE(works(step_on_half(mixed, 0)));
    } else {
      run_pair(mixed, 0, 1, 0.25);
      ASSERT_TRUE(works(st_trainer_apply(mixed.trainer, nullptr)));
    }
    ASSERT_TRUE(works(step_on_half(own, 0)));
    EXPECT_EQ(mixed.digest(), own.digest());
  }
}

// With dropout and a model of the library: its outputs are available, and the random numbers are those of a step.
TEST(OwnLoss, DropsOutWhatAStepWould) {
  const char* recipe = R"({"batch": 3, "accumulate": 2, "warmup": 0, "dropout": 0.2})";
  SmallRun pairs({}, nullptr, recipe), own({}, nullptr, recipe);
  TokenBatch batch(6, 5);
  for (int i = 0; i < 2; ++i) {
    for (const int64_t k : {0, 1}) {
      const int64_t dims[] = {3, kSmallContext};
      const st_named_view views[] = {{"tokens", {ST_I32, 2, dims, nullptr, batch.tokens.data() + 24 * k, 96}},
                                     {"targets", {ST_I32, 2, dims, nullptr, batch.targets.data() + 24 * k, 96}}};
      ASSERT_TRUE(works(forward(pairs.trainer, 2, views)));
      ASSERT_TRUE(works(st_trainer_backward(pairs.trainer, 0, nullptr)));
    }
    ASSERT_TRUE(works(st_trainer_apply(pairs.trainer, nullptr)));
    ASSERT_TRUE(works(st_trainer_step(own.trainer, 2, batch.views(), nullptr)));
    EXPECT_EQ(pairs.digest(), own.digest());
  }
}

TEST(OwnLoss, AGraphWithoutALossTrainsByTheHostsAlone) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t rows[] = {ST_BATCH, 2}, weights[] = {2, 1};
  st_value x = 0, w = 0, y = 0;
  ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, rows, &x)));
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, weights, ST_INIT_ZEROS, 0, &w)));
  const st_value in[] = {x, w};
  ASSERT_TRUE(works(st_graph_op(graph, "matmul", 2, in, nullptr, 1, &y)));
  ASSERT_TRUE(works(st_graph_output(graph, "y", y)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 3, "warmup": 0, "lr": 0.05, "weight_decay": 0})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);

  float values[] = {1, 0, 0, 1, 1, 1};
  const int64_t dims[] = {3, 2}, out[] = {3, 1};
  const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, values, sizeof values}}};
  int32_t done = 0;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_step(trainer, 1, batch, nullptr), {"no loss", "st_trainer_forward"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_run(trainer, 1, nullptr, nullptr), {"no loss", "st_trainer_forward"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_advance(trainer, 1, batch, 0, &done, nullptr), {"no loss", "st_trainer_forward"}));

  // y of rows (1,0), (0,1), (1,1) must be 1, -1, 0: w = (1, -1) is the only solution.
  const float wanted[] = {1, -1, 0};
  float gradient[3];
  const st_named_view by[] = {{"y", {ST_F32, 2, out, nullptr, gradient, sizeof gradient}}};
  for (int step = 0; step < 400; ++step) {
    const st_named_view* outputs = nullptr;
    ASSERT_TRUE(works(forward(trainer, 1, batch, &outputs)));
    for (int i = 0; i < 3; ++i) gradient[i] = static_cast<const float*>(outputs[0].view.data)[i] - wanted[i];
    ASSERT_TRUE(works(st_trainer_backward(trainer, 1, by)));
    const auto report = filled(st_step_report_init, st_trainer_apply, trainer);
    ASSERT_EQ(report.step, step + 1);
  }
  float learned[2];
  const st_view to = {ST_F32, 2, weights, nullptr, learned, sizeof learned};
  ASSERT_TRUE(works(st_model_get(model, "w", &to)));
  EXPECT_NEAR(learned[0], 1, 1e-2);
  EXPECT_NEAR(learned[1], -1, 1e-2);
}

TEST(OwnLoss, AnErrorOrACancelUndoesThePairs) {
  SineRun run(kOne), undisturbed(kOne);
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(step_on_half(*r, 0)));
  const std::string before = run.digest();
  SineHalf half(run, 1);
  run_pair(run, 0, 1, 0.25);
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_step(run.trainer, 2, half.views, nullptr), {"st_trainer_apply"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, forward(run.trainer, 0, nullptr), {"\"x\"", "missing"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_apply(run.trainer, nullptr), {"st_trainer_forward"}));
  run_pair(run, 0, 1, 0.25);
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_apply(run.trainer, nullptr), {"last whole step"}));
  EXPECT_EQ(run.digest(), before);
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(step_on_half(*r, 1)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(OwnLoss, GradientsThatAreNoOutputsAreRefused) {
  SineRun run(kOne);
  SineHalf half(run, 0);
  float gradient[4] = {};
  const int64_t short_dims[] = {3, 1};
  const st_named_view good = {"prediction", {ST_F32, 2, half.dims, nullptr, gradient, sizeof gradient}};
  const auto expect_refused = [&](std::initializer_list<std::string_view> words, const auto& change) {
    ASSERT_TRUE(works(forward(run.trainer, 1, half.views)));
    st_named_view by = good;
    change(by);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_backward(run.trainer, 1, &by), words));
  };
  expect_refused({"\"y\"", "not a floating output", "there are \"prediction\""}, [](st_named_view& v) { v.name = "y"; });
  expect_refused({"prediction", "f32", "i32"}, [](st_named_view& v) { v.view.dtype = ST_I32; });
  expect_refused({"prediction", "[4, 1]", "[3, 1]"}, [&](st_named_view& v) { v.view.dims = short_dims; });
  expect_refused({"prediction", "NULL"}, [](st_named_view& v) { v.view.data = nullptr; });
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_backward(run.trainer, 1, &good), {"st_trainer_forward"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_backward(run.trainer, 1, nullptr), {"NULL"}));
  ASSERT_TRUE(works(forward(run.trainer, 1, half.views)));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_backward(run.trainer, 0, nullptr), {"own loss"})) << "y was not given";
  EXPECT_TRUE(works(step_on_half(run, 0)));
}

TEST(OwnLoss, AGradientThatIsNotFiniteSkipsTheUpdate) {
  SineRun run(kOne);
  const std::string before = run.digest();
  SineHalf half(run, 0);
  float gradient[4] = {0, 1, INFINITY, 0};
  const st_named_view by[] = {{"prediction", {ST_F32, 2, half.dims, nullptr, gradient, sizeof gradient}}};
  ASSERT_TRUE(works(forward(run.trainer, 1, half.views)));
  ASSERT_TRUE(works(st_trainer_backward(run.trainer, 1, by)));
  const auto report = filled(st_step_report_init, st_trainer_apply, run.trainer);
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(run.digest(), before);
}

TEST(OwnLoss, OutputsAreWrittenWhereTheHostSays) {
  SineRun run(kOne), other(kOne);
  SineHalf half(run, 0);
  const int64_t apart[] = {3, 1};
  float wanted[4], row[12], gradient[4] = {1, 0.5F, -0.25F, 0};
  for (float& each : row) each = 9;
  const st_named_view into = {"prediction", {ST_F32, 2, half.dims, apart, row, sizeof row}};
  const st_named_view by = {"prediction", {ST_F32, 2, half.dims, nullptr, gradient, sizeof gradient}};
  for (int step = 0; step < 2; ++step) {
    const st_named_view* outputs = nullptr;
    ASSERT_TRUE(works(forward(other.trainer, 1, half.views, &outputs)));
    std::memcpy(wanted, outputs[0].view.data, sizeof wanted);
    ASSERT_TRUE(works(st_trainer_forward_into(run.trainer, 1, half.views, 1, &into)));
    for (int i = 0; i < 12; ++i) EXPECT_EQ(row[i], i % 3 == 0 ? wanted[i / 3] : 9);
    for (SineRun* each : {&run, &other}) {
      ASSERT_TRUE(works(st_trainer_backward(each->trainer, 1, &by)));
      ASSERT_TRUE(works(st_trainer_apply(each->trainer, nullptr)));
    }
  }
  ASSERT_TRUE(works(st_trainer_forward_into(run.trainer, 2, half.views, 0, nullptr))) << "the graph's own loss needs none of them";
  ASSERT_TRUE(works(forward(other.trainer, 2, half.views)));
  for (SineRun* each : {&run, &other}) {
    ASSERT_TRUE(works(st_trainer_backward(each->trainer, 0, nullptr)));
    ASSERT_TRUE(works(st_trainer_apply(each->trainer, nullptr)));
  }
  EXPECT_EQ(run.digest(), other.digest());
}

TEST(OwnLoss, ViewsThatFitNoOutputAreRefused) {
  SineRun run(kOne);
  SineHalf half(run, 0);
  const int64_t short_dims[] = {3, 1};
  float row[4] = {};
  const auto expect_refused = [&](st_status code, std::initializer_list<std::string_view> words, const auto& change) {
    ASSERT_TRUE(works(forward(run.trainer, 1, half.views)));
    st_named_view to[2] = {{"prediction", {ST_F32, 2, half.dims, nullptr, row, sizeof row}}, {}};
    to[1] = to[0];
    const int64_t m = change(to);
    EXPECT_TRUE(fails(code, st_trainer_forward_into(run.trainer, 1, half.views, m, to), words));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_backward(run.trainer, 0, nullptr), {"st_trainer_forward"})) << "the step is undone";
  };
  using Views = st_named_view*;
  expect_refused(ST_NOT_FOUND, {"forward", "\"predicton\"", "did you mean \"prediction\""},
                 [](Views v) { return v->name = "predicton", 1; });
  expect_refused(ST_INVALID_ARGUMENT, {"\"prediction\" is f32", "the view is f16", "the same"},
                 [](Views v) { return v->view.dtype = ST_F16, 1; });
  expect_refused(ST_INVALID_ARGUMENT, {"[4, 1]", "[3, 1]"}, [&](Views v) { return v->view.dims = short_dims, 1; });
  expect_refused(ST_INVALID_ARGUMENT, {"\"prediction\" is given twice"}, [](Views) { return 2; });
  expect_refused(ST_INVALID_ARGUMENT, {"\"prediction\" shares memory with input \"x\"", "its own"},
                 [&](Views v) { return v->view.data = run.x.data() + 3, 1; });
  EXPECT_TRUE(works(step_on_half(run, 0)));
}

// Adam's moments of one kind of step do not exist in the other kind's plan.
TEST(OwnLoss, AnOutputOfAParameterThatTheGraphsLossDoesNotTrainIsRefused) {
  SineRun run(kOne), beside(kOne);
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, apart = 0, other = 0;
  const auto graph = hold<HeldGraph>(st_graph_create, run.context);
  sine_graph(graph);
  ASSERT_TRUE(works(st_graph_input(graph, "z", ST_F32, 2, column, &x)));
  ASSERT_TRUE(works(st_graph_parameter(graph, "apart", 1, column + 1, ST_INIT_ZEROS, 1, &apart)));
  const st_value sum[] = {x, apart};
  ASSERT_TRUE(works(st_graph_op(graph, "add", 2, sum, nullptr, 1, &other)));
  ASSERT_TRUE(works(st_graph_output(graph, "other", other)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, run.recipe, nullptr);

  SineHalf half(run, 0);
  const st_named_view batch[] = {half.views[0], half.views[1], {"z", half.views[0].view}};
  EXPECT_TRUE(fails(ST_UNSUPPORTED, forward(trainer, 3, batch), {"\"apart\"", "without a loss"}));
  auto report = filled(st_step_report_init), alone = filled(st_step_report_init);
  ASSERT_TRUE(works(st_trainer_step(trainer, 3, batch, &report)));
  ASSERT_TRUE(works(st_trainer_step(beside.trainer, 2, half.views, &alone)));
  EXPECT_EQ(report.loss, alone.loss);
}

// The plan of a host's loss is made on first use; if there is no memory for it, steps continue as before.
TEST(OwnLoss, WithoutMemoryForItStepsGoOn) {
  int64_t enough = 0;
  {
    SmallRun run;
    const auto stats = memory_of(run.context);
    enough = stats.allocated_bytes;
  }
  auto options = filled(st_context_options_init);
  options.memory_limit = enough + 4096;
  SmallRun run({}, &options), undisturbed;
  TokenBatch batch(6, 3), three(3, 3);
  int64_t m = 7;
  const st_named_view* outputs = nullptr;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_trainer_forward(run.trainer, 2, three.views(), &m, &outputs), {"host's loss", "bytes"}));
  EXPECT_EQ(m, 0);
  EXPECT_EQ(outputs, nullptr);
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_step(r->trainer, 2, batch.views(), nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(OwnLoss, ItsMemoryIsCounted) {
  SineRun run(kOne);
  auto report = filled(st_step_report_init);
  auto stats = filled(st_memory_stats_init);
  for (const int64_t inputs : {1, 2}) {
    run_pair(run, 0, inputs, 0.25);
    ASSERT_TRUE(works(st_trainer_apply(run.trainer, &report)));
    ASSERT_TRUE(works(st_context_memory(run.context, &stats)));
    EXPECT_EQ(report.memory_bytes, stats.allocated_bytes);
  }
}

}  // namespace
