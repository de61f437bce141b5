// Where the time of a GPT's training step goes: times every instruction of its plan, sums by op and shape and sorts by cost. Also prints
// the rate of products and of attention. Usage: op_times [width layers heads context batch vocabulary threads steps [micro_batches]], all
// of them or none; ST_SKIP=a,b omits passes, ST_PRECISION=bf16 sets the recipe's precision.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backend/kernel_side.h"
#include "base/os/machine.h"
#include "exec/executor.h"
#include "model/model.h"
#include "models/builtin.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"

namespace {

struct Options {
  int64_t width = 768, layers = 12, heads = 12, context = 256, batch = 4, vocabulary = 8192, threads = 2, steps = 5, micro_batches = 1;
};

struct Cost {
  int64_t count = 0;
  double seconds = 0, flops = 0;
};

std::string name_of(const st::Graph& graph, const st::Node& node) {
  std::string name(st::name_of(node.op));
  for (size_t i = 0; i < std::min<size_t>(node.in.size(), 3); ++i) name += " " + st::text(graph.type(node.in[i]).shape);
  return name;
}

double flops_of(const st::Graph& graph, const st::Node& node) {
  const auto shape = [&](size_t i) -> const st::Shape& { return graph.type(node.in[i]).shape; };
  const double out = node.out.empty() ? 0 : static_cast<double>(node.out[0].shape.elements());
  switch (node.op) {
    case st::Op::matmul:
      return 2 * out * static_cast<double>(node.attrs.flag("transpose_a") ? shape(0)[shape(0).rank() - 2] : shape(0).last());
    case st::Op::linear:
    case st::Op::fused_linear:
      return 2 * out * static_cast<double>(shape(0).last());
    case st::Op::attention:  // causal: half of the scores
      return 2 * out * static_cast<double>(shape(1)[1]);
    case st::Op::attention_backward:
      return 5 * out * static_cast<double>(shape(1)[1]);
    default:
      return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const std::array<int64_t*, 9> numbers = {&o.width,      &o.layers,  &o.heads, &o.context,      &o.batch,
                                           &o.vocabulary, &o.threads, &o.steps, &o.micro_batches};
  for (int i = 1; i < argc && i <= 9; ++i) *numbers[static_cast<size_t>(i - 1)] = std::atoll(argv[i]);
  const auto context = std::make_shared<st::Context>(
      st::ContextOptions{.device = "cpu", .threads = static_cast<int>(o.threads), .log = {}, .parallel = {}, .memory = {}});
  st::Model model(context,
                  st::build_builtin("gpt", st::text(R"({"layers": )", o.layers, R"(, "width": )", o.width, R"(, "heads": )", o.heads,
                                                    R"(, "context": )", o.context, R"(, "vocabulary": )", o.vocabulary, "}")),
                  1);
  st::Storage storage = model.storage().with_same_parameters();
  const auto workers = context->make_workers(static_cast<int>(o.threads));
  st::Recipe recipe{.batch = o.batch, .accumulate = o.micro_batches};
  if (const char* const precision = std::getenv("ST_PRECISION")) recipe.precision = precision;
  st::PlanOptions options;
  std::istringstream skip(std::getenv("ST_SKIP") == nullptr ? "" : std::getenv("ST_SKIP"));
  for (std::string pass; std::getline(skip, pass, ',');) options.skip.push_back(pass);
  st::Executor executor(st::plan_training(model.program(), recipe,
                                          st::kernel_needs(st::profile_of(context->backend(), static_cast<int>(o.threads))), options),
                        storage, *workers, nullptr);
  const st::Program& program = executor.plan().program;
  std::mt19937 random(1);
  std::vector<int32_t> tokens(static_cast<size_t>(o.batch * o.context));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % static_cast<uint32_t>(o.vocabulary));
  executor.bind(program.slot_named("tokens"), tokens.data());
  executor.bind(program.slot_named("targets"), tokens.data());
  auto* rates = as<double>(executor.slot(program.slot_named("rates")));
  rates[0] = 1e-4, rates[1] = 1;

  std::map<std::string, Cost> costs;
  double whole = 0;
  for (int64_t step = -1; step < o.steps; ++step) {  // the first one warms up
    st::Executor::Cursor cursor;
    for (size_t i = 0; i < executor.end(); ++i) {
      const st::Instruction at = executor.plan().instructions[i];
      const double start = st::os::seconds();
      executor.run_until(cursor, i + 1, st::Executor::kNoDeadline, [](int64_t) { return true; });
      const double seconds = st::os::seconds() - start;
      if (step < 0) continue;
      const st::Graph& graph = program.sections[static_cast<size_t>(at.section)].graph;
      const st::Node& node = graph[at.node];
      Cost& cost = costs[name_of(graph, node)];
      ++cost.count, cost.seconds += seconds, cost.flops += flops_of(graph, node);
      whole += seconds;
    }
  }
  std::vector<std::pair<std::string, Cost>> rows(costs.begin(), costs.end());
  std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const auto steps = static_cast<double>(o.steps);
  std::printf("%.2f ms a step, %lld threads\n%9s %6s %6s %9s  op\n", whole / steps * 1e3, static_cast<long long>(o.threads), "ms", "share",
              "times", "GFLOP/s");
  for (const auto& [name, cost] : rows) {
    std::printf("%9.3f %5.1f%% %6.0f ", cost.seconds / steps * 1e3, 100 * cost.seconds / whole, static_cast<double>(cost.count) / steps);
    if (cost.flops > 0)
      std::printf("%9.1f", cost.flops / cost.seconds / 1e9);
    else
      std::printf("%9s", "");
    std::printf("  %s\n", name.c_str());
  }
  return 0;
}
