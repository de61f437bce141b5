// Partial steps through scaletrain.hpp: slices, the host's own loss, gradients, changed recipes.
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, AStepInSlicesIsReportedByTheLastAlone) {
  const Sine sine;
  const Data data = Data::arrays(sine.context, 8, sine.batch);
  const Trainer trainer(sine.model, sine.recipe, data);
  EXPECT_FALSE(trainer.advance(std::chrono::nanoseconds(1)));
  EXPECT_EQ(trainer.advance(std::chrono::hours(1))->step, 1) << "of the data's rows";
  EXPECT_FALSE(sine.trainer.advance(sine.batch, std::chrono::nanoseconds(1)));
  EXPECT_EQ(sine.trainer.advance(sine.batch, std::chrono::hours(1))->step, 1) << "of the host's";
}

TEST_F(Hpp, AnEvaluationHasTheMeansOfItsMetrics) {
  const Context context;
  const Graph graph(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 1}), y = graph.input("y", DType::f32, {kBatch, 1});
  const Value prediction = linear(graph, "only", x, 1, 1);
  graph.output("metric.target", y);
  graph.output("metric.twice", y + y);
  graph.loss(ops::mse(prediction, y));
  const Model model(graph, 1);
  const Trainer trainer(model, Recipe(R"({"batch": 4})"));
  std::vector<float> in(8, 1), out = {1, 2, 3, 4, 5, 6, 7, 8};
  const Data data = Data::arrays(context, 8, {{"x", view(in, {8, 1})}, {"y", view(out, {8, 1})}});
  const Evaluation found = trainer.evaluate(data);
  EXPECT_EQ(found.count, 8);
  EXPECT_GT(found.loss, 0);
  ASSERT_EQ(found.metrics.size(), 2U);
  EXPECT_EQ(found.metrics[0].name, "metric.target");
  EXPECT_EQ(found.metrics[0].mean, 4.5);
  EXPECT_EQ(found.metrics[1].name, "metric.twice");
  EXPECT_EQ(found.metrics[1].mean, 9.0);
}

TEST_F(Hpp, AHostsOwnLossTrains) {
  const Sine sine;
  const Views half{{"x", view(sine.x.data(), {4, 1})}, {"y", view(sine.y.data(), {4, 1})}};
  const std::string before = sine.model.digest();
  std::vector<float> gradient = {1, -1, 1, -1};
  const Views outputs = sine.trainer.forward(half);
  EXPECT_EQ(outputs.at("prediction").size(), 4);
  std::vector<float> prediction(4);
  const float* const wanted = static_cast<const float*>(outputs.at("prediction").data());
  const std::vector<float> given(wanted, wanted + 4);
  sine.trainer.forward_into(half, {{"prediction", view(prediction, {4, 1})}});
  EXPECT_EQ(prediction, given);
  sine.trainer.backward({{"prediction", view(gradient, {4, 1})}});
  EXPECT_EQ(sine.trainer.apply().step, 1);
  EXPECT_NE(sine.model.digest(), before);
  sine.trainer.forward(half);
  sine.trainer.backward();
  EXPECT_GT(sine.trainer.apply().loss, 0) << "the graph's own";
}

TEST_F(Hpp, TheRateIsTheHostsFunctionOrASchedules) {
  Sine sine;
  const Schedule schedule(R"({"schedule": "linear", "lr": 0.5, "warmup": 0, "lr_steps": 4})");
  EXPECT_EQ(schedule.at(1), 0.375);
  EXPECT_EQ(thrown_status([&] { schedule.at(-1); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([] { Schedule(R"({"schedule": "cosine"})"); }), Status::invalid_argument);
  const auto token = std::make_shared<int>(1);
  sine.trainer.set_schedule([&schedule, token](int64_t k) {
    if (k == 2) throw Mine{8};
    return schedule.at(k);
  });
  EXPECT_EQ(token.use_count(), 2);
  EXPECT_EQ(sine.trainer.step(sine.batch).lr, 0.5);
  EXPECT_EQ(sine.trainer.step(sine.batch).lr, 0.375);
  EXPECT_EQ(thrown_number([&] { sine.trainer.step(sine.batch); }), 8);
  sine.trainer.set_schedule({});
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(sine.trainer.step(sine.batch).step, 3);
  sine.trainer.set_schedule([](int64_t) { return -1.0; });
  EXPECT_EQ(thrown_status([&] { sine.trainer.step(sine.batch); }), Status::callback);
}

TEST_F(Hpp, GradientsAreReadAndTheRateIsChanged) {
  Sine sine;
  sine.trainer.step(sine.batch);
  std::vector<float> gradient(16);
  sine.trainer.gradient("first.weight", view(gradient, {1, 16}));
  EXPECT_NE(gradient, std::vector<float>(16));
  sine.trainer.set("lr", "0.5");
  EXPECT_EQ(sine.trainer.value("lr"), "0.5");
  EXPECT_EQ(thrown_status([&] { sine.trainer.set("batch", "2"); }), Status::unsupported);
}

TEST_F(Hpp, TheAverageOfTheWeightsIsReadEvaluatedAndUsed) {
  const Sine sine;
  const Data data = Data::arrays(sine.context, 8, sine.batch);
  EXPECT_EQ(thrown_status([&] { sine.trainer.use_average(); }), Status::wrong_state);
  const Trainer trainer(sine.model, Recipe(R"({"batch": 4, "accumulate": 2, "warmup": 0, "ema_decay": 0.5})"));
  for (int step = 0; step < 2; ++step) trainer.step(sine.batch);
  std::vector<float> average(16), weight(16);
  trainer.average("first.weight", view(average, {1, 16}));
  const double loss = trainer.evaluate_average(data).loss;
  EXPECT_NE(trainer.evaluate(data).loss, loss);
  trainer.use_average();
  sine.model.get("first.weight", view(weight, {1, 16}));
  EXPECT_EQ(average, weight);
  EXPECT_EQ(trainer.evaluate(data).loss, loss);
}

}  // namespace
