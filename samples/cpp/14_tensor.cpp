// Tensor ranks: two ranks, here threads of this process, share each layer: the first of two is split by columns, the second by rows.
// Results are those of one rank within rounding, with the same bits at one degree. Prints the lines of 14_tensor.c. Build: c++ -std=c++17
// 14_tensor.cpp -lscaletrain
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

struct Outcome {
  double loss;
  std::string state;  // a digest of all weights and moments
};

Outcome train(const scaletrain::Graph& graph, const std::string& name, int tensor, int data_ranks, const scaletrain::Views& batch) {
  const scaletrain::Model model(graph, 1);
  scaletrain::Recipe recipe(R"({"micro_batches": 2, "lr": 0.01, "weight_decay": 0, "zero": 1})");
  recipe.set("batch", std::to_string(kRows / 2));
  recipe.set("tensor", std::to_string(tensor));
  recipe.set("ranks", std::to_string(tensor * data_ranks));
  const scaletrain::Trainer trainer(model, recipe);
  scaletrain::StepReport report;
  for (int step = 0; step < kSteps; ++step) report = trainer.step(batch);
  std::printf("%-22s  step %d  loss %.3f\n", name.c_str(), static_cast<int>(report.step), report.loss);
  return {report.loss, trainer.digest()};
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
  auto hidden = scaletrain::ops::gelu(linear(graph, "first", input, 1, kWidth));
  for (const char* name : {"second", "third"}) hidden = scaletrain::ops::gelu(linear(graph, name, hidden, kWidth, kWidth));
  graph.loss(scaletrain::ops::mse(linear(graph, "fourth", hidden, kWidth, 1), target));

  const scaletrain::Views batch{{"x", scaletrain::view(x, {kRows, 1})}, {"y", scaletrain::view(y, {kRows, 1})}};
  const Outcome one = train(graph, "one rank", 1, 1, batch), shared = train(graph, "two tensor ranks", 2, 1, batch);
  const Outcome beside = train(graph, "and two data ranks", 2, 2, batch);
  const bool alike = shared.state == beside.state && std::abs(shared.loss - one.loss) < 1e-3;
  std::printf("%s\n", alike ? "the same bits at one degree, within rounding of one rank" : "they differ");
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
