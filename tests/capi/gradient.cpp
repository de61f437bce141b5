// Queries and settings between steps: gradients, the learning rate, metrics.
#include <cmath>
#include <fstream>
#include <vector>

#include "sine_rows.h"
#include "small_run.h"

namespace {

using namespace st::test;

std::vector<float> gradient_of(st_trainer* trainer, const char* name, std::vector<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count), NAN);
  const st_view to = {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), count * 4};
  EXPECT_TRUE(works(st_trainer_gradient(trainer, name, &to)));
  return values;
}

// d mean (prediction - y)^2 / d bias = mean 2 (prediction - y), computed from the outputs of the step's own rows; lr 0 keeps the weights.
TEST(Gradient, IsThatOfTheMeanLossBeforeClipping) {
  SineRun run(R"({"batch": 4, "accumulate": 2, "warmup": 0, "lr": 0, "clip": 0.001})");
  double bias = 0;
  for (const int64_t k : {0, 1}) {
    const int64_t dims[] = {4, 1};
    const st_named_view x = {"x", {ST_F32, 2, dims, nullptr, run.x.data() + 4 * k, 16}};
    const st_named_view* outputs = nullptr;
    ASSERT_TRUE(works(forward(run.trainer, 1, &x, &outputs)));
    for (size_t i = 0; i < 4; ++i)
      bias += 2 * (static_cast<double>(static_cast<const float*>(outputs[0].view.data)[i]) - run.y[4 * static_cast<size_t>(k) + i]) / 8;
  }
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, run.step()));
  auto report = filled(st_step_report_init);
  ASSERT_TRUE(works(run.step(&report)));
  EXPECT_NEAR(gradient_of(run.trainer, "second.bias", {1})[0], bias, 1e-6 * std::abs(bias) + 1e-7);  // fp32 sums of 8 rows
  double squares = 0;
  for (const float g : gradient_of(run.trainer, "first.weight", {1, 16})) squares += static_cast<double>(g) * g;
  for (const float g : gradient_of(run.trainer, "first.bias", {16})) squares += static_cast<double>(g) * g;
  for (const float g : gradient_of(run.trainer, "second.weight", {16, 1})) squares += static_cast<double>(g) * g;
  for (const float g : gradient_of(run.trainer, "second.bias", {1})) squares += static_cast<double>(g) * g;
  EXPECT_NEAR(std::sqrt(squares), report.grad_norm, 1e-6 * report.grad_norm);  // each element rounded once to fp32
}

// Views that do not fit: wrong_views.cpp.
TEST(Gradient, IsThereOnlyAfterAWholeStep) {
  SineRun run;
  float bias[2] = {};
  const int64_t one[] = {1};
  const st_view to = {ST_F32, 1, one, nullptr, bias, sizeof bias};
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_gradient(run.trainer, "second.bias", &to), {"step"}));
  ASSERT_TRUE(works(run.step()));
  EXPECT_TRUE(works(st_trainer_gradient(run.trainer, "second.bias", &to)));
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_trainer_gradient(run.trainer, "second.bia", &to), {"second.bias"}));
  ASSERT_TRUE(works(st_trainer_cancel(run.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, run.step()));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_gradient(run.trainer, "second.bias", &to), {"next one begins"}));
}

TEST(TrainerSet, RefusesWhatThePlanWasMadeFrom) {
  SineRun run;
  for (const char* key : {"batch", "clip", "weight_decay", "optimizer", "seed", "dropout", "threads"})
    EXPECT_TRUE(fails(ST_UNSUPPORTED, st_trainer_set(run.trainer, key, "1"), {key, "fixed in the plan", "new trainer"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_set(run.trainer, "lrr", "1"), {"lrr", "\"lr\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_set(run.trainer, "lr", "-1"), {"lr", "-1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_set(run.trainer, "lr", "\"fast\""), {"lr", "number"}));
  const char* text = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_get(run.trainer, "bach", &text), {"\"batch\""}));
  EXPECT_EQ(text_of(st_trainer_get, run.trainer, "batch"), "4");
}

// Over a text whose number of windows 8 does not divide: the mean of the targets, and of whether the last target is even, compared with the
// host's count; also a scalar that is already a mean, whose ragged last batch must count for fewer rows.
TEST(Metrics, AreMeansOverAllRowsAlsoWithARaggedLastBatch) {
  const std::string path = text_file("metrics.txt", 4 * 11 + 1);  // 11 windows of 4
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto data = hold<HeldData>(st_data_files, context, path.c_str(), R"({"context": 4})");
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t tokens[] = {ST_BATCH, 4}, table[] = {256, 1};
  st_value t = 0, y = 0, w = 0, e = 0, real = 0, mean = 0, zero = 0, space = 0;
  ASSERT_TRUE(works(st_graph_input(graph, "tokens", ST_I32, 2, tokens, &t)));
  ASSERT_TRUE(works(st_graph_input(graph, "targets", ST_I32, 2, tokens, &y)));
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, table, ST_INIT_ONES, 0, &w)));
  const st_value look_up[] = {w, t};
  ASSERT_TRUE(works(st_graph_op(graph, "embedding", 2, look_up, nullptr, 1, &e)));
  ASSERT_TRUE(works(st_graph_op(graph, "cast", 1, &y, R"({"dtype": "f32"})", 1, &real)));
  ASSERT_TRUE(works(st_graph_op(graph, "mean", 1, &real, nullptr, 1, &mean)));
  ASSERT_TRUE(works(st_graph_op(graph, "fill", 0, nullptr, R"({"shape": [1], "value": 32})", 1, &zero)));
  const st_value pair[] = {real, zero};
  ASSERT_TRUE(works(st_graph_op(graph, "compare", 2, pair, R"({"test": "equal"})", 1, &space)));
  ASSERT_TRUE(works(st_graph_output(graph, "seen", e)));
  ASSERT_TRUE(works(st_graph_output(graph, "metric.target", y)));
  ASSERT_TRUE(works(st_graph_output(graph, "metric.mean", mean)));
  ASSERT_TRUE(works(st_graph_output(graph, "metric.spaces", space)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  const std::string log = file_of("metrics.jsonl", "");
  ASSERT_TRUE(works(st_trainer_log(trainer, log.c_str())));
  const auto evaluation = filled(st_evaluation_init, st_trainer_evaluate, trainer, data);

  FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  double sum = 0, spaces = 0;
  for (int i = 0; i < 45; ++i) {
    const int byte = std::fgetc(file);
    if (i == 0) continue;  // never a target
    sum += byte;
    spaces += byte == ' ' ? 1 : 0;
  }
  std::fclose(file);
  ASSERT_EQ(evaluation.metric_count, 3);
  EXPECT_STREQ(evaluation.metrics[0].name, "metric.target");
  EXPECT_STREQ(evaluation.metrics[2].name, "metric.spaces");
  EXPECT_NEAR(evaluation.metrics[0].mean, sum / 44, 1e-9);
  EXPECT_NEAR(evaluation.metrics[1].mean, sum / 44, 1e-4) << "fp32 means of 16 and 12 targets";
  EXPECT_NEAR(evaluation.metrics[2].mean, spaces / 44, 1e-9);
  EXPECT_GT(spaces, 0);
  EXPECT_EQ(evaluation.count, 11);
  EXPECT_TRUE(std::isnan(evaluation.loss)) << "the graph has no loss";
  std::ifstream written(log);
  std::string line;
  std::getline(written, line);
  EXPECT_TRUE(line.starts_with(R"({"evaluation":{"step":0,"validation_loss":null,"metric.target":)")) << line;
  EXPECT_NE(line.find("\"metric.spaces\":"), std::string::npos) << line;
}

// Like the loss itself, with a ragged last batch: ten rows in fours.
TEST(Metrics, OfLossesAreTheirMeans) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const SineRows rows;
  const auto data = hold<HeldData>(st_data_arrays, context, kSineRows, 2, rows.views, nullptr, nullptr);
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, y = 0, half = 0, root = 0;
  ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, column, &x)));
  ASSERT_TRUE(works(st_graph_input(graph, "y", ST_F32, 2, column, &y)));
  ASSERT_TRUE(works(st_layer_linear(graph, "line", x, R"({"outputs": 1})", &x)));
  const st_value loss = st_op_mse(graph, x, y, ST_NONE, nullptr);
  ASSERT_TRUE(works(st_graph_op(graph, "affine", 1, &loss, R"({"scale": 0.5})", 1, &half)));
  ASSERT_TRUE(works(st_graph_output(graph, "metric.half", half)));
  ASSERT_TRUE(works(st_graph_loss(graph, loss)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  const auto evaluation = filled(st_evaluation_init, st_trainer_evaluate, trainer, data);
  ASSERT_EQ(evaluation.metric_count, 1);
  EXPECT_DOUBLE_EQ(evaluation.metrics[0].mean, evaluation.loss / 2);
  EXPECT_EQ(evaluation.count, kSineRows);

  ASSERT_TRUE(works(st_graph_op(graph, "sqrt", 1, &loss, nullptr, 1, &root)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_output(graph, "metric.root", root), {"st_graph_output", "sqrt (%"}));
}

TEST(Metrics, AGraphWithoutAnyHasNone) {
  SmallRun run(text_file("no_metrics.txt", 500));
  const auto evaluation = filled(st_evaluation_init, st_trainer_evaluate, run.trainer, run.data);
  EXPECT_EQ(evaluation.metric_count, 0);
  EXPECT_EQ(evaluation.metrics, nullptr);
}

}  // namespace
