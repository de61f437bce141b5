// A small regression with the objects of scaletrain.hpp, and helpers for tests of that header.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace scaletrain::test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// An exception type that the library never throws.
struct Mine {
  int number;
};

/// The number of the Mine that `call` throws; -1: it throws nothing or something else.
template <class Call>
int thrown_number(Call&& call) {
  try {
    call();
  } catch (const Mine& mine) {
    return mine.number;
  } catch (...) {
  }
  return -1;
}

/// The status of the Error that `call` throws; ok: it throws nothing.
template <class Call>
Status thrown_status(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.status();
  }
  return Status::ok;
}

/// The message of the Error that `call` throws, which has this status.
template <class Call>
std::string refusal(Status status, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline Value linear(const Graph& graph, const char* name, const Value& x, int64_t in, int64_t out) {
  const Scope scope = graph.scope(name);
  const Value weight = graph.parameter("weight", {in, out}, Init::xavier, 1);  // first: operands are evaluated in any order
  return matmul(x, weight) + graph.parameter("bias", {out}, Init::zeros, 0);
}

inline Model sine_model(const Context& context) {
  const Graph graph(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 1}), y = graph.input("y", DType::f32, {kBatch, 1});
  const Value prediction = linear(graph, "second", graph.op("gelu", {linear(graph, "first", x, 1, 16)}), 16, 1);
  graph.output("prediction", prediction);
  graph.loss(graph.op("mse", {prediction, y}, "", 2).front());
  return Model(graph, 1);
}

/// 8 rows of y = sin x, and a trainer that takes them in two micro-batches.
struct Sine {
  explicit Sine(const ContextOptions& options = one_thread()) : context(options), model(sine_model(context)), trainer(model, recipe) {
    for (int i = 0; i < 8; ++i) {
      x.push_back(static_cast<float>(i) - 3.5F);
      y.push_back(std::sin(x.back()));
    }
    batch = {{"x", view(x, {8, 1})}, {"y", view(y, {8, 1})}};
  }
  static ContextOptions one_thread() {
    ContextOptions options;
    options.threads = 1;
    return options;
  }

  Context context;
  Model model;
  Recipe recipe{R"({"batch": 4, "accumulate": 2, "warmup": 0, "lr": 0.01})"};
  Trainer trainer;
  std::vector<float> x, y;
  Views batch;
};

/// Every test must leave no handle behind.
class Hpp : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(live_handles(), 0); }
};

}  // namespace scaletrain::test
