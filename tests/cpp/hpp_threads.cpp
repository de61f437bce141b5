// Two threads use one object: each call succeeds or is Busy. ThreadSanitizer finds races that are too short to show.
#include <atomic>
#include <sstream>
#include <string>
#include <thread>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

/// Runs the calls in two threads at once; returns how many gave another answer than `wanted` (Busy is no answer).
template <class First, class Second>
int other_answers(const std::string& first_wanted, const First& first, const std::string& second_wanted, const Second& second) {
  std::atomic<int> other{0};
  const auto read = [&](const std::string& wanted, const auto& call) {
    for (int i = 0; i < 2000; ++i) {
      try {
        if (call() != wanted) ++other;
      } catch (const Error& error) {
        if (error.status() != Status::busy) ++other;
      }
    }
  };
  std::thread thread([&] { read(first_wanted, first); });
  read(second_wanted, second);
  thread.join();
  return other;
}

TEST_F(Hpp, TextsOfOneObjectInTwoThreadsAreWholeOrBusy) {
  const Sine sine;
  const auto digest = [&] { return sine.trainer.digest(); };
  const auto plan = [&] { return sine.trainer.plan(); };
  ASSERT_NE(digest(), plan());
  EXPECT_EQ(other_answers(digest(), digest, plan(), plan), 0);
}

TEST_F(Hpp, NamesOfMetricsInTwoThreadsAreWholeOrBusy) {
  const Context context(Sine::one_thread());
  const Graph graph(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 1});
  const std::string name = "metric.of_a_name_that_has_memory_of_its_own";
  graph.output(name, x);
  graph.loss(ops::mse(linear(graph, "only", x, 1, 1), x));
  const Model model(graph, 1);
  const Trainer trainer(model, Recipe(R"({"batch": 4})"));
  std::vector<float> in(4, 1);
  const Data data = Data::arrays(context, 4, {{"x", view(in, {4, 1})}});
  const auto evaluate = [&] { return trainer.evaluate(data).metrics.at(0).name; };
  EXPECT_EQ(other_answers(name, evaluate, name, evaluate), 0);
}

TEST_F(Hpp, WhatAReadTellsInTwoThreadsIsWholeOrBusy) {
  const Sine sine;
  std::string bytes;
  sine.model.write([&](const void* more, int64_t count) { bytes.append(static_cast<const char*>(more), static_cast<size_t>(count)); });
  ReadOptions options;
  options.partial = true;
  options.renames = {{"first.bias", "a_name_that_has_memory_of_its_own"}};
  const auto read = [&] {
    std::istringstream stream(bytes);
    return sine.model.read(stream, options).unexpected.at(0);
  };
  const std::string unexpected = read();
  EXPECT_EQ(other_answers(unexpected, read, unexpected, read), 0);
}

}  // namespace
