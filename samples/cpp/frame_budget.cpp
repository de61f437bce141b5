// Training inside a game's loop: each frame lends 3 ms, and a step goes on where the frame before left it. A slice ends at the first
// instruction after its time, so a frame is late by one instruction of the net at most; the bits are those of whole steps.
// Build: c++ -std=c++17 frame_budget.cpp -lscaletrain
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <scaletrain.hpp>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int64_t kRows = 256, kWidth = 256;
constexpr int kSteps = 40;
constexpr auto kBudget = 3ms;

/// What a character should do: aim at a target that moves along a wave.
scaletrain::Model aiming_model(const scaletrain::Context& context) {
  const scaletrain::Graph graph(context);
  const auto state = graph.input("state", scaletrain::DType::f32, {scaletrain::kBatch, 2});
  const auto aim = graph.input("aim", scaletrain::DType::f32, {scaletrain::kBatch, 1});
  const auto weights = [&](const char* name, int64_t in, int64_t out) {
    return graph.parameter(name, {in, out}, scaletrain::Init::xavier, 1.0);
  };
  const auto first = graph.op("gelu", {matmul(state, weights("first", 2, kWidth))});
  const auto second = graph.op("gelu", {matmul(first, weights("second", kWidth, kWidth))});
  graph.loss(graph.op("mse", {matmul(second, weights("third", kWidth, 1)), aim}, "", 2).front());
  return scaletrain::Model(graph, 1);
}

}  // namespace

int main() try {
  scaletrain::require();
  scaletrain::ContextOptions options;
  options.threads = 1;  // the game has the others
  const scaletrain::Context context(options);
  const scaletrain::Model model = aiming_model(context);
  const scaletrain::Trainer trainer(model, scaletrain::Recipe(R"({"batch": 256, "lr": 0.01, "warmup": 0, "weight_decay": 0})"));

  std::vector<float> state, aim;
  for (int64_t row = 0; row < kRows; ++row) {
    const double angle = 6.28 * static_cast<double>(row) / kRows;
    state.insert(state.end(), {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    aim.push_back(static_cast<float>(std::sin(2 * angle)));
  }
  const scaletrain::Views batch{{"state", scaletrain::view(state, {kRows, 2})}, {"aim", scaletrain::view(aim, {kRows, 1})}};

  int frames = 0;
  double sum = 0, worst = 0, first_loss = 0, loss = 0;
  for (int steps = 0; steps < kSteps; ++frames) {
    // ... input, physics and drawing of the frame ...
    const auto begin = Clock::now();
    if (const auto report = trainer.advance(batch, kBudget)) {
      loss = report->loss;
      if (++steps == 1) first_loss = loss;
    }
    const double slice = Milliseconds(Clock::now() - begin).count();
    sum += slice;
    worst = std::max(worst, slice);
  }
  std::printf("%d steps in %d frames; slices of %.2f ms on average, %.2f ms at worst\n", kSteps, frames, sum / frames, worst);
  std::printf("loss from %.4f to %.4f\n", first_loss, loss);
  return loss < first_loss ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
