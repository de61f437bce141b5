// The time to plan a training step of one rank, without the other ranks.
//
// Usage: planning [ROUNDS] [ROW]    prints median, least and greatest milliseconds by row, and the process's greatest resident memory so
//                                   far: of one plan with ROUNDS 1 and the row's number, from 0; takes seconds
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "models/gpt.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"

namespace {

using namespace st;

struct Row {
  GptOptions model;
  int64_t ranks, zero;
  int32_t rank;  // along the data axis
  int64_t stages = 1, micro_batches = 1;
  int32_t stage = 0;
  const char* schedule = "1f1b";
};

const GptOptions kSmall = {.layers = 12, .width = 768, .heads = 12, .context = 256, .vocabulary = 8192};
const GptOptions kLarge = {.layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257};  // GPT-3 175B

const Row kRows[] = {{kSmall, 1, 0, 0},
                     {kSmall, 2, 2, 1},
                     {kSmall, 256, 3, 77},
                     {kLarge, 1, 0, 0},
                     {kLarge, 4096, 1, 1733},
                     {kLarge, 4096, 3, 1733},
                     {kLarge, 4096, 1, 133, 8, 32, 4, "1f1b"},
                     {kLarge, 4096, 1, 133, 8, 32, 4, "zb-v"},
                     {kLarge, 4096, 1, 133, 16, 64, 0, "1f1b"},
                     {kLarge, 4096, 1, 133, 16, 64, 15, "1f1b"},
                     {kLarge, 4096, 1, 133, 16, 64, 0, "zb-v"},
                     {kLarge, 4096, 3, 133, 16, 64, 7, "zb-v"}};

void measure(const Row& row, int rounds, const KernelNeeds& needs) {
  const Program model = build_gpt(row.model);
  Recipe recipe;
  recipe.batch = 1;
  recipe.ranks = row.ranks;
  recipe.zero = row.zero;
  recipe.stages = row.stages;
  recipe.schedule = row.schedule;
  recipe.accumulate = row.micro_batches;
  recipe.precision = row.zero == 0 ? "fp32" : "bf16";
  PlanOptions options;
  options.rank = row.rank;
  options.stage = row.stage;
  std::vector<double> times;
  size_t instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = os::seconds();
    instructions = plan_training(model, recipe, needs, options).instructions.size();
    times.push_back((os::seconds() - start) * 1e3);
  }
  std::ranges::sort(times);
  std::string topology = text(row.model.layers, " layers, ", row.ranks, " ranks, zero ", row.zero);
  if (row.stages > 1)
    topology += text(", stage ", row.stage, " of ", row.stages, ", ", row.schedule, " of ", row.micro_batches, " micro-batches");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%s: %.1f ms (%.1f to %.1f), %zu instructions; %.0f MiB resident\n", topology.c_str(), times[times.size() / 2], times.front(),
              times.back(), instructions, static_cast<double>(usage.ru_maxrss) / 1024);
}

}  // namespace

int main(int count, char** words) {
  try {
    const int rounds = count > 1 ? std::atoi(words[1]) : 7;
    const auto backend = make_cpu_backend();
    const KernelNeeds needs = kernel_needs(profile_of(*backend, 1));
    const size_t only = count > 2 ? static_cast<size_t>(std::atoi(words[2])) : std::size(kRows);
    for (size_t row = 0; row < std::size(kRows); ++row)
      if (row == only || only == std::size(kRows)) measure(kRows[row], std::max(rounds, 1), needs);
  } catch (const Error& error) {
    std::fprintf(stderr, "planning: %s\n", error.message().c_str());
    return 1;
  }
  return 0;
}
