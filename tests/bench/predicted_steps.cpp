// Step times that the planner predicts from a calibration, next to measured ones, of models and recipes that were not used to calibrate:
// one rank, data parallel and ZeRO, pipelines and tensor ranks, all as threads. Usage: predicted_steps [seconds to calibrate [seconds to
// measure [times]]]: calibrates and measures so many times in turn and compares the medians, so that a machine that others share has the
// same speeds in both; ST_DUMP=FILE also writes the instructions of one rank: row, name, flops, bytes, measured and predicted seconds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/os/machine.h"
#include "models/builtin.h"
#include "planner/calibration.h"
#include "planner/run_plan.h"
#include "samples.h"

namespace {

struct Row {
  const char *model, *options, *recipe;
};

// Threads 0 are all cores, divided by the ranks.
constexpr Row kRows[] = {
    {"gpt", R"({"width":192,"heads":3,"layers":3,"context":96,"vocabulary":512})", R"({"batch":4})"},
    {"gpt", R"({"width":448,"heads":7,"layers":2,"context":192,"vocabulary":3000})", R"({"batch":2})"},
    {"gpt", R"({"width":96,"heads":3,"layers":4,"context":64,"vocabulary":256})", R"({"batch":8,"accumulate":2})"},
    {"gpt", R"({"width":576,"heads":9,"layers":2,"context":128,"vocabulary":4096})", R"({"batch":2,"precision":"bf16"})"},
    {"gpt", R"({"width":256,"heads":4,"layers":4,"context":96,"vocabulary":512})", R"({"batch":4,"recompute":"blocks"})"},
    {"mlp", R"({"inputs":128,"hidden":[384,384,384],"outputs":8})", R"({"batch":96})"},
    {"gpt", R"({"width":320,"heads":5,"layers":2,"context":128,"vocabulary":1000})", R"({"batch":3,"threads":1})"},
    {"gpt", R"({"width":640,"heads":10,"layers":2,"context":128,"vocabulary":5000})", R"({"batch":2,"threads":1})"},
    {"gpt", R"({"width":384,"heads":6,"layers":3,"context":64,"vocabulary":2048})", R"({"batch":4,"precision":"bf16","threads":1})"},
    {"gpt", R"({"width":192,"heads":3,"layers":2,"context":128,"vocabulary":1024})",
     R"({"batch":6,"precision":"bf16","accumulate":4,"threads":1})"},
    {"gpt", R"({"width":320,"heads":5,"layers":2,"context":64,"vocabulary":700})",
     R"({"batch":4,"optimizer":"sgd","dropout":0.1,"threads":1})"},
    {"mlp", R"({"inputs":500,"hidden":[800,800],"outputs":20,"loss":"cross_entropy"})", R"({"batch":64,"precision":"bf16","threads":1})"},
    {"gpt", R"({"width":192,"heads":3,"layers":4,"context":96,"vocabulary":512})", R"({"batch":4,"ranks":2})"},
    {"gpt", R"({"width":320,"heads":5,"layers":3,"context":96,"vocabulary":1000})", R"({"batch":3,"ranks":2,"zero":1})"},
    {"gpt", R"({"width":448,"heads":7,"layers":2,"context":128,"vocabulary":2000})", R"({"batch":2,"ranks":2,"zero":2,"accumulate":2})"},
    {"gpt", R"({"width":512,"heads":8,"layers":3,"context":96,"vocabulary":1024})", R"({"batch":3,"ranks":2,"zero":3})"},
    {"gpt", R"({"width":384,"heads":6,"layers":3,"context":96,"vocabulary":1024})",
     R"({"batch":4,"ranks":2,"zero":1,"precision":"bf16","reduce":"step","accumulate":3})"},
    {"gpt", R"({"width":192,"heads":3,"layers":6,"context":96,"vocabulary":512})", R"({"batch":4,"stages":2,"accumulate":6})"},
    {"gpt", R"({"width":320,"heads":5,"layers":4,"context":96,"vocabulary":700})",
     R"({"batch":2,"stages":2,"accumulate":8,"schedule":"zb-h1"})"},
    {"gpt", R"({"width":256,"heads":4,"layers":8,"context":64,"vocabulary":512})",
     R"({"batch":4,"stages":2,"accumulate":6,"schedule":"interleaved"})"},
    {"gpt", R"({"width":448,"heads":7,"layers":4,"context":96,"vocabulary":1000})",
     R"({"batch":2,"stages":2,"accumulate":4,"schedule":"gpipe","precision":"bf16"})"},
    {"gpt", R"({"width":384,"heads":6,"layers":3,"context":96,"vocabulary":1024})", R"({"batch":4,"tensor":2})"},
};

struct Case {
  Row row;
  st::Recipe recipe;
  std::unique_ptr<st::MeasuredSteps> steps;
};

void dump_instructions(std::FILE* to, size_t row, const st::Machine& machine, const Case& one) {
  const st::RateSet& rates =
      machine.rates_for(static_cast<int32_t>(one.recipe.threads), static_cast<int32_t>(one.recipe.ranks), one.steps->memory());
  for (const st::OpTime& op : one.steps->ops()) {
    const st::OpRate* const rate = rates.find(op.name);
    std::fprintf(to, "%zu\t%s\t%.9g\t%.9g\t%.9g\t%.9g\t%d\n", row, op.name.c_str(), op.work.flops, op.work.bytes, op.seconds,
                 rate == nullptr ? -1 : rate->seconds(op.work), op.is_first ? 1 : 0);
  }
}

/// The same steps on one thread and on all, before and after calibrating and again while the rows are measured: how much slower the
/// machine, which a virtual one shares, has become.
class Control {
 public:
  explicit Control(const std::shared_ptr<st::Context>& context) {
    for (const int64_t threads : {int64_t{1}, static_cast<int64_t>(context->threads())}) {
      st::StepChoice choice{"gpt", R"({"width":256,"heads":4,"layers":2,"context":96,"vocabulary":600})", {}};
      choice.recipe.batch = 4;
      choice.recipe.threads = threads;
      steps_.push_back(std::make_unique<st::MeasuredSteps>(context, choice));
    }
  }
  void run(int times) {
    for (int i = 0; i < times; ++i)
      for (const auto& steps : steps_) steps->run(3, false);
  }
  double step(int64_t threads) const { return steps_[threads == 1 ? 0 : 1]->step(); }

 private:
  std::vector<std::unique_ptr<st::MeasuredSteps>> steps_;
};

std::vector<Case> cases_of(const std::shared_ptr<st::Context>& context) {
  std::vector<Case> cases;
  for (const Row& row : kRows) {
    st::StepChoice choice{row.model, row.options, {}};
    choice.recipe.merge(row.recipe);
    choice.recipe.ranks = std::max(choice.recipe.ranks, choice.recipe.stages * choice.recipe.tensor);
    if (choice.recipe.threads == 0) choice.recipe.threads = std::max<int64_t>(1, context->threads() / choice.recipe.ranks);
    cases.push_back({row, choice.recipe, std::make_unique<st::MeasuredSteps>(context, choice)});
  }
  return cases;
}

double predicted(const Case& of, const st::Machine& machine) {
  const st::RunPlan run({.model = st::build_builtin(of.row.model, of.row.options),
                         .recipe = of.recipe,
                         .machine = machine,
                         .by_threads = true,
                         .late_parameters = false});
  return run.simulate().seconds();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 40, measuring = argc > 2 ? std::atof(argv[2]) : 30;
  const int64_t times = argc > 3 ? std::max(1L, std::atol(argv[3])) : 1;
  const auto context = std::make_shared<st::Context>(st::ContextOptions{});
  Control calibrating(context), measured_too(context);
  std::vector<st::Machine> machines;
  std::vector<Case> cases = cases_of(context);
  for (int64_t time = 0; time < times; ++time) {
    const double began = st::os::seconds();
    calibrating.run(20);
    machines.push_back(st::calibrate(context, {.seconds = seconds, .is_quick = false, .library = "bench"}));
    calibrating.run(20);
    if (time == 0) std::printf("measured %s\n", machines.front().source.c_str());
    std::printf("calibrated in %.1f s, control", st::os::seconds() - began);
    const double end = st::os::seconds() + measuring;
    for (int round = 0; round < 3 || st::os::seconds() < end; ++round)
      for (const Case& one : cases) {
        measured_too.run(1);
        one.steps->run(round + time == 0 ? 1 : std::clamp<int64_t>(static_cast<int64_t>(0.02 / one.steps->step()), 1, 20), false);
      }
    std::printf(" %.2f ms on one thread\n", measured_too.step(1) * 1e3);
    std::fflush(stdout);
  }

  std::FILE* const dump = std::getenv("ST_DUMP") == nullptr ? nullptr : std::fopen(std::getenv("ST_DUMP"), "w");
  const auto slower = [&](int64_t threads) { return measured_too.step(threads) / calibrating.step(threads); };
  std::printf("the same steps while measuring and while calibrating: %.2f times as long on one thread, %.2f on all\n", slower(1),
              slower(0));
  std::printf("  measured ms  predicted  error  plan MB\n");
  std::vector<double> errors, errors_at_one_speed;
  for (const Case& one : cases) {
    std::vector<double> predictions;
    for (const st::Machine& machine : machines) predictions.push_back(predicted(one, machine));
    const double usual = bench::median(predictions), measured = one.steps->step(), error = usual / measured - 1;
    errors.push_back(std::abs(error));
    const bool is_on_one = one.recipe.threads == 1 && one.recipe.ranks == 1;
    errors_at_one_speed.push_back(std::abs(usual * slower(is_on_one ? 1 : 0) / measured - 1));
    std::printf("  %11.3f %10.3f %5.1f %% %8.1f  %s %s %s\n", measured * 1e3, usual * 1e3, error * 100,
                static_cast<double>(one.steps->memory()) / 1e6, one.row.model, one.row.options, one.row.recipe);
    if (dump == nullptr) continue;
    one.steps->run(5);
    dump_instructions(dump, errors.size() - 1, machines.back(), one);
  }
  if (dump != nullptr) std::fclose(dump);
  const auto tell = [](const char* what, const std::vector<double>& of) {
    std::printf("%smedian %.1f %%, worst %.1f %%\n", what, bench::median(of) * 100, *std::ranges::max_element(of) * 100);
  };
  tell("", errors);
  tell("at the machine's speed while it was calibrated: ", errors_at_one_speed);
  return 0;
}
