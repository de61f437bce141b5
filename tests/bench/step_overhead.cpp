// The cost of st_trainer_step beyond its kernels: the smallest step (mlp 64-64-8, batch 1, one thread, borrowed batches) through the C ABI,
// compared with a loop over the same plan's kernels on its own memory. Usage: step_overhead [rounds] [steps a round]
#include "backend/kernel_side.h"
#include "base/os/machine.h"
#include "exec/executor.h"
#include "model/model.h"
#include "models/builtin.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"
#include "samples.h"

namespace {

constexpr const char* kModel = R"({"inputs": 64, "hidden": [64], "outputs": 8})";

/// The same instructions in order and nothing else: no handle, check, report, lock or clock.
class BareKernels {
 public:
  BareKernels(const float* x, const float* y) {
    const st::Program& program = executor_.plan().program;
    executor_.bind(program.slot_named("x"), x);
    executor_.bind(program.slot_named("y"), y);
    auto* rates = as<double>(executor_.slot(program.slot_named("rates")));
    rates[0] = 1e-3;
    rates[1] = 1;
  }
  void step() { executor_.run({}); }
  size_t instructions() const { return executor_.plan().instructions.size(); }

 private:
  std::shared_ptr<st::Context> context_ =
      std::make_shared<st::Context>(st::ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}});
  st::Model model_{context_, st::build_builtin("mlp", kModel), 1};
  st::Storage storage_ = model_.storage().with_same_parameters();
  std::unique_ptr<st::Workers> workers_ = context_->make_workers(1);
  st::Executor executor_{st::plan_training(model_.program(), {.batch = 1}, st::kernel_needs(st::profile_of(context_->backend(), 1))),
                         storage_, *workers_, nullptr};
};

template <class Steps>
double microseconds_of(Steps& steps) {
  const double start = st::os::seconds();
  steps.step();
  return (st::os::seconds() - start) * 1e6;
}

void print(const char* name, const std::vector<double>& values) {
  std::printf("%-28s %8.2f us   10th %.2f   90th %.2f\n", name, bench::median(values), bench::quantile(values, 0.1),
              bench::quantile(values, 0.9));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31, count = argc > 2 ? std::atoi(argv[2]) : 500;
  if (rounds < 1 || count < 1) return 2;
  float x[64], y[8];
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (int i = 0; i < 8; ++i) y[i] = static_cast<float>(i % 3) - 1;
  st_context_options options;
  bench::hold(st_context_options_init(&options, sizeof options));
  options.threads = 1;
  st_context* context = nullptr;
  bench::hold(st_context_create(&options, &context));
  const int64_t in[] = {1, 64}, out[] = {1, 8};
  bench::AbiTrainer abi(context, "mlp", kModel, R"({"batch": 1, "threads": 1})",
                        {{"x", {ST_F32, 2, in, nullptr, x, sizeof x}}, {"y", {ST_F32, 2, out, nullptr, y, sizeof y}}});
  BareKernels kernels(x, y);
  std::vector<double> with, bare, beyond, a(static_cast<size_t>(count)), b(static_cast<size_t>(count));
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    // Interleaved, and medians of a round: another program on the processor affects both alike.
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = microseconds_of(abi);
      b[i] = microseconds_of(kernels);
    }
    if (round < 0) continue;
    with.push_back(bench::median(a));
    bare.push_back(bench::median(b));
    beyond.push_back(with.back() - bare.back());
  }
  std::printf("%zu instructions, %d rounds of %d steps\n", kernels.instructions(), rounds, count);
  print("st_trainer_step", with);
  print("its kernels alone", bare);
  print("beyond the kernels", beyond);
  st_context_destroy(context);
  return 0;
}
