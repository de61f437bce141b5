// A pipeline of own stages: a model of four layers, with hand-written forward and backward, is cut into stages on ranks, here threads of
// this process. The library runs a schedule and sends activations and gradients. The weights have the same bits as with one stage. Prints
// the numbers of 16_own_stages.c.
//   16_own_stages [gpipe|1f1b|zb-h1|interleaved|zb-v]
// Build: c++ -std=c++17 16_own_stages.cpp -lscaletrain
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <scaletrain.hpp>
#include <string>
#include <vector>

namespace {

using scaletrain::StageWork;

constexpr int kLayers = 4, kWidth = 8, kRows = 8, kSize = kRows * kWidth, kMicroBatches = 8, kAll = kMicroBatches * kSize, kSteps = 200;

float uniform(unsigned& state) {  // in [-1, 1)
  state = state * 1664525U + 1013904223U;
  return static_cast<float>(state >> 8) / (1 << 23) - 1;
}

/// Each layer, y = tanh(x w), is a part. Only the rank of its stage uses its weights.
struct Model {
  std::array<std::array<float, kWidth * kWidth>, kLayers> weights{}, gradients{};
  std::array<float, kAll> inputs{}, targets{}, predictions{};

  Model() {
    unsigned state = 1;
    for (auto& layer : weights)
      for (float& w : layer) w = 0.6F * uniform(state);
    state = 2;
    for (int k = 0; k < kAll; ++k) targets[k] = 0.5F * static_cast<float>(std::sin(3.0 * (inputs[k] = uniform(state))));
  }

  const float* x(const StageWork& work) const { return work.part == 0 ? &inputs[work.micro_batch * kSize] : work.input.as<const float>(); }
  float* y(const StageWork& work) {
    return work.output.data() != nullptr ? work.output.as<float>() : &predictions[work.micro_batch * kSize];
  }
  /// The gradient of element k of x w. The last part begins with the loss, the mean squared error.
  float dz(const StageWork& work, int k) {
    const float out = y(work)[k];
    const float dy = work.output_gradient.data() != nullptr ? work.output_gradient.as<const float>()[k]
                                                            : 2 * (out - targets[work.micro_batch * kSize + k]) / kAll;
    return dy * (1 - out * out);
  }

  void forward(const StageWork& work, double& loss) {
    for (int k = 0; k < kSize; ++k) {
      float z = 0;
      for (int i = 0; i < kWidth; ++i) z += x(work)[k / kWidth * kWidth + i] * weights[work.part][i * kWidth + k % kWidth];
      y(work)[k] = static_cast<float>(std::tanh(static_cast<double>(z)));
      const float error = y(work)[k] - targets[work.micro_batch * kSize + k];
      if (work.output.data() == nullptr) loss += error * error / kAll;
    }
  }
  void backward_input(const StageWork& work) {
    for (int k = 0; k < kSize && work.input_gradient.data() != nullptr; ++k) {
      float dx = 0;
      for (int j = 0; j < kWidth; ++j) dx += dz(work, k / kWidth * kWidth + j) * weights[work.part][k % kWidth * kWidth + j];
      work.input_gradient.as<float>()[k] = dx;
    }
  }
  void backward_weight(const StageWork& work) {
    for (int k = 0; k < kSize; ++k)
      for (int i = 0; i < kWidth; ++i) gradients[work.part][i * kWidth + k % kWidth] += x(work)[k / kWidth * kWidth + i] * dz(work, k);
  }
  /// Gradient descent with a learning rate of 1.
  void update(int part) {
    for (int k = 0; k < kWidth * kWidth; ++k) weights[part][k] -= gradients[part][k];
    gradients[part] = {};
  }
};

struct Result {
  double bubble = 0;
  std::vector<double> losses;  // of the rank with the last part; 0 on the others
};

Result train_stage(Model& model, const scaletrain::Communicator& rank, const std::string& schedule, int chunks) {
  std::vector<int> parts(chunks);  // of this rank
  double loss = 0;
  const scaletrain::Stage stage{[&](const StageWork& work) {
                                  parts[work.chunk] = work.part;
                                  model.forward(work, loss);
                                },
                                [&](const StageWork& work) { model.backward_input(work); },
                                [&](const StageWork& work) { model.backward_weight(work); }};
  const std::vector<scaletrain::OpType> types(chunks, {scaletrain::DType::f32, {kRows, kWidth}});
  const scaletrain::Pipeline pipeline(rank, schedule, types, types, stage);
  const std::string json = pipeline.schedule(kMicroBatches), key = "\"bubble\":";
  Result result{std::strtod(json.c_str() + json.find(key) + key.size(), nullptr), {}};
  for (int step = 0; step < kSteps; ++step, loss = 0) {
    pipeline.run(kMicroBatches);
    result.losses.push_back(loss);
    for (const int part : parts) model.update(part);
  }
  return result;
}

void train(const scaletrain::ContextOptions& options, Model& model, const std::string& schedule, int stages) {
  const scaletrain::Context context(options);
  const auto ranks = scaletrain::Communicator::local(context, stages);
  std::vector<std::future<Result>> threads;
  for (const auto& rank : ranks)
    threads.push_back(std::async(std::launch::async, [&] { return train_stage(model, rank, schedule, kLayers / stages); }));
  Result last;
  for (auto& thread : threads)
    if (Result result = thread.get(); result.losses[0] > 0) last = result;
  std::printf("%-11s  %d stage%s  bubble %.3f  loss", schedule.c_str(), stages, stages == 1 ? " " : "s", last.bubble);
  for (const int step : {0, 49, 99, 149, 199}) std::printf("  %.4f", last.losses[step]);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string schedule = argc > 1 && argv[1][0] != '-' ? argv[1] : "1f1b";
  const bool has_two = schedule == "interleaved" || schedule == "zb-v";  // parts a stage
  scaletrain::ContextOptions options;
  if (argc > 1 && std::string(argv[argc - 1]) == "--device")
    return std::fprintf(stderr, "usage: %s [SCHEDULE] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && std::string(argv[argc - 2]) == "--device") options.device = argv[argc - 1];  // --device NAME at the end
  Model alone, model;
  train(options, alone, "interleaved", 1);  // all parts on one stage
  train(options, model, schedule, has_two ? 2 : kLayers);
  const bool alike = alone.weights == model.weights;
  std::printf("%s\n", alike ? "the weights have the same bits" : "the weights differ");
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
