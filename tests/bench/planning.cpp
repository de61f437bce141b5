// The time to plan a training step of one rank, without the other ranks: ranks, ZeRO stage and layers from the command line.
//
// Usage: planning [ROUNDS]    prints median, least and greatest milliseconds by row; takes seconds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "models/gpt.h"
#include "train/kernel_needs_of.h"
#include "train/recipe.h"

namespace {

using namespace st;

struct Row {
  GptOptions model;
  int64_t ranks, zero;
  int32_t rank;
};

const GptOptions kSmall = {.layers = 12, .width = 768, .heads = 12, .context = 256, .vocabulary = 8192};
const GptOptions kLarge = {.layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257};  // GPT-3 175B

const Row kRows[] = {{kSmall, 1, 0, 0}, {kSmall, 2, 2, 1},       {kSmall, 256, 3, 77},
                     {kLarge, 1, 0, 0}, {kLarge, 4096, 1, 1733}, {kLarge, 4096, 3, 1733}};

void measure(const Row& row, int rounds, const KernelNeeds& needs) {
  const Program model = build_gpt(row.model);
  Recipe recipe;
  recipe.batch = 1;
  recipe.ranks = row.ranks;
  recipe.zero = row.zero;
  recipe.precision = row.zero == 0 ? "fp32" : "bf16";
  PlanOptions options;
  options.rank = row.rank;
  std::vector<double> times;
  size_t instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = os::seconds();
    instructions = plan_training(model, recipe, needs, options).instructions.size();
    times.push_back((os::seconds() - start) * 1e3);
  }
  std::ranges::sort(times);
  std::printf("%3lld layers, %4lld ranks, zero %lld: %7.1f ms (%.1f to %.1f), %zu instructions\n", static_cast<long long>(row.model.layers),
              static_cast<long long>(row.ranks), static_cast<long long>(row.zero), times[times.size() / 2], times.front(), times.back(),
              instructions);
}

}  // namespace

int main(int count, char** words) {
  try {
    const int rounds = count > 1 ? std::atoi(words[1]) : 7;
    const auto backend = make_cpu_backend();
    const KernelNeeds needs = kernel_needs(profile_of(*backend, 1));
    for (const Row& row : kRows) measure(row, std::max(rounds, 1), needs);
  } catch (const Error& error) {
    std::fprintf(stderr, "planning: %s\n", error.message().c_str());
    return 1;
  }
  return 0;
}
