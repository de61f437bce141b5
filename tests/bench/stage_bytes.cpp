// Memory of ranks at each stage of ZeRO for a GPT of 100 million parameters, compared with the table of states (traps.md, T8): bytes per
// parameter and rank, the mean over the ranks, which are threads here. Counts what their buffers take from the context after a step.
//
// Usage: stage_bytes [fp32|bf16 [MICRO_BATCHES_OF_A_RANK [micro|step]]]    takes some GB of memory, and seconds per row; status 1 if the
// counted bytes are not the planned ones
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/os/files.h"
#include "ir/cuts.h"
#include "models/gpt.h"
#include "train/trainer.h"

namespace {

using namespace st;

const GptOptions kModel = {.layers = 12, .width = 768, .heads = 12, .context = 16, .vocabulary = 19200};
constexpr std::array kStates = {Arena::parameters, Arena::gradients, Arena::optimizer};

int64_t resident() {
  const std::string status = os::short_file("/proc/self/status");
  const size_t at = status.find("RssAnon:");
  return at == std::string::npos ? 0 : std::strtoll(status.c_str() + at + 8, nullptr, 10) * 1024;
}

struct Step {
  std::string precision = "fp32";
  int64_t rounds = 1;
  std::string reduce = "micro";
};

/// The table for Adam with fp32 gradients; ZeRO-3's live units are not included.
double table(const Step& step, int64_t ranks, int64_t zero) {
  const auto held = [&](double bytes, bool is_whole) { return is_whole ? bytes : bytes / static_cast<double>(ranks); };
  const bool is_16_bit = step.precision != "fp32", once = step.rounds > 1 && step.reduce == "step";
  const bool has_whole_gradients = zero == 0 || (zero == 1 && step.rounds == 1) || once;
  return held(is_16_bit ? 2 : 4, zero < 3) + held(is_16_bit ? 4 : 0, zero == 0) + held(4, has_whole_gradients) + held(8, zero == 0);
}

int64_t bytes_of(const Plan& plan, Role role) {
  int64_t sum = 0;
  for (const Slot& slot : plan.program.slots)
    if (slot.role == role) sum += own_type(plan.program, slot).bytes();
  return sum;
}

/// Whether each role's count is the sum of the plans'. Parameters that threads share belong to the model.
bool is_as_planned(const Trainer& trainer, const MemoryAccount::Uses& uses) {
  bool is_right = true;
  for (int32_t a = 0; a < static_cast<int32_t>(Arena::host); ++a) {
    const auto arena = static_cast<Arena>(a);
    int64_t planned = 0;
    for (const Plan* plan : trainer.plans()) planned += plan->memory.of(arena);
    if (arena == Arena::parameters) planned = std::max(planned, trainer.model().storage().bytes());
    const int64_t counted = uses.of[static_cast<size_t>(role_of(arena))].now;
    if (counted == planned) continue;
    is_right = false;
    std::printf("  %s: planned %lld bytes, counted %lld\n", std::string(name_of(arena)).c_str(), static_cast<long long>(planned),
                static_cast<long long>(counted));
  }
  return is_right;
}

bool row(const Step& step, int64_t ranks, int64_t zero) {
  const int64_t before = resident();
  const auto context = std::make_shared<Context>(ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}});
  const auto model = std::make_shared<Model>(context, build_gpt(kModel), 1);
  Recipe recipe{.batch = 1};
  recipe.set("precision", text("\"", step.precision, "\""));
  recipe.set("reduce", text("\"", step.reduce, "\""));
  const int64_t rows = ranks * step.rounds;
  recipe.micro_batches = rows;
  recipe.ranks = ranks;
  recipe.zero = zero;
  recipe.threads = 1;
  Trainer trainer(model, recipe, nullptr);
  std::vector<int32_t> tokens(static_cast<size_t>(rows * kModel.context));
  std::iota(tokens.begin(), tokens.end(), 0);
  const std::vector<HostView> batch = {plain_view("tokens", DType::i32, {rows, kModel.context}, tokens.data()),
                                       plain_view("targets", DType::i32, {rows, kModel.context}, tokens.data())};
  trainer.step(batch);

  const MemoryAccount::Uses uses = context->memory()->account().uses();
  const double each = static_cast<double>(ranks) * static_cast<double>(model->elements());
  int64_t states = 0, units = 0, wire = 0;
  for (const Arena arena : kStates) states += uses.of[static_cast<size_t>(role_of(arena))].now;
  for (const Plan* plan : trainer.plans()) states += bytes_of(*plan, Role::working);
  for (const Plan* plan : trainer.plans()) units += plan->memory.of(Arena::buckets);
  for (const int64_t sent : trainer.sent_bytes()) wire += sent;
  std::printf("%lld  %lld  %6.2f  %6.2f  %6.2f  %6.2f  %6.2f   %.3f\n", static_cast<long long>(ranks), static_cast<long long>(zero),
              table(step, ranks, zero), static_cast<double>(states) / each, static_cast<double>(units) / each,
              static_cast<double>(uses.all.now) / each, static_cast<double>(wire) / each,
              static_cast<double>(resident() - before) / static_cast<double>(uses.all.now));
  std::fflush(stdout);
  return is_as_planned(trainer, uses);
}

}  // namespace

int main(int count, char** arguments) {
  Step step;
  if (count > 1) step.precision = arguments[1];
  if (count > 2) step.rounds = std::max<int64_t>(1, std::strtoll(arguments[2], nullptr, 10));
  if (count > 3) step.reduce = arguments[3];
  bool is_right = true;
  std::printf("bytes a parameter and rank, %s, %lld micro-batches a rank, reduce %s\n", step.precision.c_str(),
              static_cast<long long>(step.rounds), step.reduce.c_str());
  std::printf("ranks, zero, table, states, live units, all, sent in a step; resident by all\n");
  for (const int64_t ranks : {1, 2, 4})
    for (int64_t zero = 0; zero < (ranks == 1 ? 1 : 4); ++zero) is_right = row(step, ranks, zero) && is_right;
  return is_right ? 0 : 1;
}
