// Data parallel: the micro-batches of a step are distributed over ranks, here threads of this process. One recipe key sets their number;
// losses and weights are those of one rank, bit by bit, for any number. Prints the numbers of 11_data_parallel.c.
// Build: c++ -std=c++17 11_data_parallel.cpp -lscaletrain
#include <cmath>
#include <cstdio>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace {

constexpr int64_t kRows = 64, kWidth = 32;
constexpr int kSteps = 100;

scaletrain::Value linear(const scaletrain::Graph& graph, const char* name, const scaletrain::Value& x, int64_t in, int64_t out) {
  const scaletrain::Scope scope = graph.scope(name);
  const auto weight = graph.parameter("weight", {in, out}, scaletrain::Init::xavier, 1.0);
  return matmul(x, weight) + graph.parameter("bias", {out}, scaletrain::Init::zeros, 0.0);
}

/// A digest of all weights and moments.
std::string train(const scaletrain::Graph& graph, int ranks, const scaletrain::Views& batch) {
  const scaletrain::Model model(graph, 1);
  scaletrain::Recipe recipe(R"({"batch": 8, "micro_batches": 8, "lr": 0.01, "weight_decay": 0})");
  recipe.set("ranks", std::to_string(ranks));
  const scaletrain::Trainer trainer(model, recipe);
  scaletrain::StepReport report;
  for (int step = 0; step < kSteps; ++step) report = trainer.step(batch);  // the rows of all ranks
  std::printf("%d rank%s  step %d  loss %.5f\n", ranks, ranks == 1 ? " " : "s", static_cast<int>(report.step), report.loss);
  return trainer.digest();
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    x.push_back(-3.0F + 6.0F * static_cast<float>(i) / (kRows - 1));
    y.push_back(std::sin(x.back()));
  }
  scaletrain::ContextOptions options;
  if (argc > 1 && std::string(argv[argc - 1]) == "--device") return std::fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") options.device = argv[argc - 1];  // --device NAME at the end
  const scaletrain::Context context(options);
  const scaletrain::Graph graph(context);
  const auto input = graph.input("x", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto target = graph.input("y", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto hidden = scaletrain::ops::gelu(linear(graph, "first", input, 1, kWidth));
  graph.loss(scaletrain::ops::mse(linear(graph, "second", hidden, kWidth, 1), target));

  const scaletrain::Views batch{{"x", scaletrain::view(x, {kRows, 1})}, {"y", scaletrain::view(y, {kRows, 1})}};
  const std::string first = train(graph, 1, batch);
  bool alike = true;
  for (const int ranks : {2, 3, 8}) alike = train(graph, ranks, batch) == first && alike;
  std::printf("%s\n", alike ? "all have the same bits" : "they differ");
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
