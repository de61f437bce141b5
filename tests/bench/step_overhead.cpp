// What st_trainer_step costs beyond its kernels: the smallest step (mlp 64-64-8, batch 1, one thread, borrowed batches) through the C ABI,
// beside a loop over the same plan's kernels on memory of its own. Usage: step_overhead [rounds] [steps a round]
#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/os.h"
#include "exec/executor.h"
#include "models/builtin.h"
#include "train/model.h"
#include "train/recipe.h"

namespace {

constexpr const char* kModel = R"({"inputs": 64, "hidden": [64], "outputs": 8})";

/// Through the ABI, as a host does it.
class AbiSteps {
 public:
  AbiSteps(float* x, float* y) {
    views_[0] = {"x", {ST_F32, 2, in_, nullptr, x, 64 * 4}};
    views_[1] = {"y", {ST_F32, 2, out_, nullptr, y, 8 * 4}};
    st_context_options options;
    hold(st_context_options_init(&options, sizeof options));
    options.threads = 1;
    hold(st_context_create(&options, &context_));
    hold(st_model_builtin(context_, "mlp", kModel, 1, &model_));
    hold(st_recipe_create(R"({"batch": 1, "threads": 1})", &recipe_));
    hold(st_trainer_create(model_, recipe_, nullptr, &trainer_));
    hold(st_step_report_init(&report_, sizeof report_));
  }
  ~AbiSteps() {
    st_trainer_destroy(trainer_);
    st_recipe_destroy(recipe_);
    st_model_destroy(model_);
    st_context_destroy(context_);
  }
  AbiSteps(const AbiSteps&) = delete;
  AbiSteps& operator=(const AbiSteps&) = delete;
  void step() { hold(st_trainer_step(trainer_, 2, views_, &report_)); }

 private:
  static void hold(st_status status) {
    if (status == ST_OK) return;
    std::fprintf(stderr, "%s\n", st_last_error());
    std::exit(1);
  }
  st_context* context_ = nullptr;
  st_model* model_ = nullptr;
  st_recipe* recipe_ = nullptr;
  st_trainer* trainer_ = nullptr;
  st_step_report report_;
  int64_t in_[2] = {1, 64}, out_[2] = {1, 8};
  st_named_view views_[2];
};

/// The same instructions, one after the other, and nothing else: no handle, check, report, lock or clock.
class BareKernels {
 public:
  BareKernels(const float* x, const float* y) {
    const st::Program& program = executor_.plan().program;
    executor_.bind(program.slot_named("x"), x);
    executor_.bind(program.slot_named("y"), y);
    auto* rates = executor_.slot(program.slot_named("rates")).as<double>();
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
  st::Executor executor_{st::plan_training(model_.program(), {.batch = 1}, context_->backend(), 1), storage_, *workers_, nullptr};
};

template <class Steps>
double microseconds_of(Steps& steps) {
  const double start = st::os::seconds();
  steps.step();
  return (st::os::seconds() - start) * 1e6;
}

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + static_cast<int64_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print(const char* name, std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) { return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))]; };
  std::printf("%-28s %8.2f us   10th %.2f   90th %.2f\n", name, at(0.5), at(0.1), at(0.9));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31, count = argc > 2 ? std::atoi(argv[2]) : 500;
  if (rounds < 1 || count < 1) return 2;
  float x[64], y[8];
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (int i = 0; i < 8; ++i) y[i] = static_cast<float>(i % 3) - 1;
  AbiSteps abi(x, y);
  BareKernels kernels(x, y);
  std::vector<double> with, bare, beyond, a(static_cast<size_t>(count)), b(static_cast<size_t>(count));
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    // Turn about, and the middle of a round: another program's turn on the processor hits both alike.
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = microseconds_of(abi);
      b[i] = microseconds_of(kernels);
    }
    if (round < 0) continue;
    with.push_back(median(a));
    bare.push_back(median(b));
    beyond.push_back(with.back() - bare.back());
  }
  std::printf("%zu instructions, %d rounds of %d steps\n", kernels.instructions(), rounds, count);
  print("st_trainer_step", with);
  print("its kernels alone", bare);
  print("beyond the kernels", beyond);
  return 0;
}
