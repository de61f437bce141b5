// A first training step in C++: a two-layer net learns y = sin x from arrays of this program. Prints the numbers of 01_first_step.c.
// Build: c++ -std=c++17 01_first_step.cpp -lscaletrain
#include <cmath>
#include <cstdio>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace {

constexpr int64_t kRows = 64, kWidth = 32;
constexpr int kSteps = 400;

scaletrain::Value linear(const scaletrain::Graph& graph, const char* name, const scaletrain::Value& x, int64_t in, int64_t out) {
  const scaletrain::Scope scope = graph.scope(name);
  const auto weight = graph.parameter("weight", {in, out}, scaletrain::Init::xavier, 1.0);
  return matmul(x, weight) + graph.parameter("bias", {out}, scaletrain::Init::zeros, 0.0);
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    x.push_back(-3.0F + 6.0F * static_cast<float>(i) / (kRows - 1));
    y.push_back(std::sin(x.back()));
  }

  scaletrain::require();
  scaletrain::ContextOptions options;
  if (argc > 1 && std::string(argv[argc - 1]) == "--device") return std::fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") options.device = argv[argc - 1];  // --device NAME at the end
  const scaletrain::Context context(options);
  const scaletrain::Graph graph(context);
  const auto input = graph.input("x", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto target = graph.input("y", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto hidden = scaletrain::ops::gelu(linear(graph, "first", input, 1, kWidth));
  graph.loss(scaletrain::ops::mse(linear(graph, "second", hidden, kWidth, 1), target));

  const scaletrain::Model model(graph, 1);
  const scaletrain::Trainer trainer(model, scaletrain::Recipe(R"({"batch": 64, "lr": 0.01, "weight_decay": 0})"));
  const scaletrain::Views batch{{"x", scaletrain::view(x, {kRows, 1})}, {"y", scaletrain::view(y, {kRows, 1})}};
  scaletrain::StepReport report;
  for (int step = 0; step < kSteps; ++step) {
    report = trainer.step(batch);
    if (report.step % 100 == 0 || report.step == 1) std::printf("step %3d  loss %.5f\n", static_cast<int>(report.step), report.loss);
  }
  const bool learned = report.loss < 0.01;
  std::printf("%s\n", learned ? "it learned the sine" : "it did not learn the sine");
  return learned ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
