// Uses each class and each template of scaletrain.hpp once, compiled as C++17, which the header promises.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <scaletrain.hpp>
#include <scaletrain/gpt2_names.hpp>
#include <string>
#include <vector>

namespace {

using namespace scaletrain;

std::vector<float> x(4, 1), y(4, 2);

void train(const Context& context) {
  const Graph graph(context);
  const Value in = graph.input("x", DType::f32, {kBatch, 1}), wanted = graph.input("y", DType::f32, {kBatch, 1});
  const Value weight = graph.parameter("weight", {1, 1}, Init::ones, 0);
  graph.output("metric.mean", graph.apply("mean", {in}, {{"axes", {0, 1}}, {"keep_dims", false}}));
  graph.loss(ops::mse(matmul(in, weight), wanted));
  const Model model(graph, 1);
  const Views batch{{"x", view(x.data(), {4, 1})}, {"y", view(y, {4, 1})}};
  const Data data = Data::callback(context, 4, {{"x", DType::f32, {1}}, {"y", DType::f32, {1}}},
                                   [](const int64_t*, int64_t, const std::vector<View>& views) {
                                     for (const View& each : views) each.as<float>()[0] = 1;
                                   });
  const Trainer trainer(model, Recipe(R"({"batch": 4, "ema_decay": 0.5})"), data);
  trainer.set_schedule([schedule = Schedule(R"({"schedule": "constant"})").at(0)](int64_t) { return schedule; });
  trainer.run(1, [](const StepReport&) { return true; });
  trainer.step(batch);
  static_cast<void>(trainer.advance(batch, std::chrono::hours(1)));
  static_cast<void>(trainer.evaluate_average(data));
  std::vector<float> mean(1);
  Predictor(model).run({{"x", view(x, {4, 1})}}, {{"metric.mean", view(mean.data(), {})}});

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("hpp_cxx17_" + std::to_string(getpid()));
  {
    const Checkpoint checkpoint(context, folder.string());
    trainer.save_async(checkpoint).wait();
    ReadOptions options;
    options.renames = gpt2_names();
    LoadReport report;
    try {
      model.load(checkpoint, "", options, report);
    } catch (const Error&) {
    }
    trainer.resume(checkpoint);
    static_cast<void>(checkpoint.inspect());
  }
  std::filesystem::remove_all(folder);
}

void use_parts(const Context& context) {
  std::array<int64_t, 4> rows{};
  DistributedSampler(4, DistributedSamplerOptions()).next_to(view(rows));
  const Tensor tensor = Tensor::wrap(context, view(x, {2, 2}), [] {});
  GemmProblem problem;
  problem.m = problem.n = problem.k = 2;
  const Gemm gemm(context, problem);
  std::vector<float> product(4);
  gemm.run(1, tensor.view(), gemm.pack(view(y, {2, 2})), 0, view(product, {2, 2}));
  const Accumulator accumulator(context, 1, {view(x)});
  accumulator.add(1);
  const LossScaler scaler(context);
  for (float& gradient : y) gradient = static_cast<float>(scaler.scale());
  Optimizer(context, "{}", {{"x", view(x)}}).step(scaler, {view(y)});

  const std::vector<Communicator> ranks = Communicator::local(context, 1);
  const Communicator& alone = ranks.front();
  alone.all_reduce_async(view(x)).wait();
  const DataParallel exchange(alone, {{"x", view(x)}});
  exchange.gradient_ready(0);
  exchange.synchronize();
  ShardedOptimizer(alone, "{}", {{"x", view(x)}}).step({view(y)});
  const Transport none = {[](int32_t, const void*, int64_t) { return int64_t{0}; }, [](int32_t, void*, int64_t) { return int64_t{0}; }};
  static_cast<void>(Communicator::callbacks(context, 0, 1, none));
}

}  // namespace

int main() {
  ContextOptions options;
  options.log = [](LogLevel, const std::string&, const std::string&) {};
  const Context context(options);
  train(context);
  use_parts(context);
  return live_handles() == 1 ? 0 : 1;
}
