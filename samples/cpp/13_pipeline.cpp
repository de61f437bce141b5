// Pipeline stages: layers in two stages, here threads of this process, and micro-batches that pass through them. With one micro-batch the
// split is naive model parallelism: each stage waits half of the time. The bits are those of one stage. Prints the lines of 13_pipeline.c.
// Build: c++ -std=c++17 13_pipeline.cpp -lscaletrain
#include <cmath>
#include <cstdio>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace {

constexpr int64_t kRows = 64, kWidth = 32;
constexpr int kSteps = 100;

/// A layer in an outermost scope: a stage may begin with it.
scaletrain::Value linear(const scaletrain::Graph& graph, const char* name, const scaletrain::Value& x, int64_t in, int64_t out) {
  const scaletrain::Scope scope = graph.scope(name);
  const auto weight = graph.parameter("weight", {in, out}, scaletrain::Init::xavier, 1.0);
  return matmul(x, weight) + graph.parameter("bias", {out}, scaletrain::Init::zeros, 0.0);
}

/// A digest of all weights and moments.
std::string train(const scaletrain::Graph& graph, const std::string& name, int stages, const std::string& schedule, int micro_batches,
                  const scaletrain::Views& batch) {
  const scaletrain::Model model(graph, 1);
  scaletrain::Recipe recipe(R"({"lr": 0.01, "weight_decay": 0})");
  recipe.set("batch", std::to_string(kRows / micro_batches));
  recipe.set("micro_batches", std::to_string(micro_batches));
  recipe.set("stages", std::to_string(stages));
  recipe.set("schedule", "\"" + schedule + "\"");
  const scaletrain::Trainer trainer(model, recipe);
  scaletrain::StepReport report;
  for (int step = 0; step < kSteps; ++step) report = trainer.step(batch);  // the host passes the rows once
  std::printf("%-11s  %d micro-batches  step %d  loss %.5f\n", name.c_str(), micro_batches, static_cast<int>(report.step), report.loss);
  return trainer.digest();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string schedule = argc > 1 && argv[1][0] != '-' ? argv[1] : "zb-v";  // or gpipe, interleaved, zb-h1
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    x.push_back(-3.0F + 6.0F * static_cast<float>(i) / (kRows - 1));
    y.push_back(std::sin(x.back()));
  }
  scaletrain::ContextOptions options;
  if (argc > 1 && std::string(argv[argc - 1]) == "--device")
    return std::fprintf(stderr, "usage: %s [SCHEDULE] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") options.device = argv[argc - 1];  // --device NAME at the end
  const scaletrain::Context context(options);
  const scaletrain::Graph graph(context);
  const auto input = graph.input("x", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto target = graph.input("y", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  auto hidden = scaletrain::ops::gelu(linear(graph, "first", input, 1, kWidth));
  for (const char* name : {"second", "third"}) hidden = scaletrain::ops::gelu(linear(graph, name, hidden, kWidth, kWidth));
  graph.loss(scaletrain::ops::mse(linear(graph, "fourth", hidden, kWidth, 1), target));

  const scaletrain::Views batch{{"x", scaletrain::view(x, {kRows, 1})}, {"y", scaletrain::view(y, {kRows, 1})}};
  const std::string whole = train(graph, "one stage", 1, "1f1b", 1, batch);
  const bool naive = train(graph, "naive split", 2, "1f1b", 1, batch) == whole;
  const std::string one = train(graph, "one stage", 1, "1f1b", 8, batch);
  const bool piped = train(graph, "1f1b", 2, "1f1b", 8, batch) == one;
  const bool alike = train(graph, schedule, 2, schedule, 8, batch) == one && piped && naive;
  std::printf("%s\n", alike ? "the same bits with the same micro-batches" : "they differ");
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
