// Random matrix products on every kernel class of this CPU: values are compared with double precision, bits across threads, tiles, packing,
// rows and layouts, and no byte may be accessed beyond an operand.
//
//   random_products --seconds 5 --seed 1     all classes, with equal time each; --set amx_bf16: only that one
//   random_products --only 1234              only that seed, in this process; prints each run
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "base/float_mode.h"
#include "base/text.h"
#include "product_checks.h"
#include "seeded_trials.h"
#include "trial_journal.h"

namespace {

using namespace st::fuzz;
using Clock = std::chrono::steady_clock;
constexpr uint64_t kEnoughFindings = 20;  // of one class

void play(const st::CpuSet& set, uint64_t seed) {
  const st::FloatMode mode;  // required of every caller of the kernels
  journal().seed = seed;
  if (play_product(set, seed)) ++journal().problems;
}

/// Runs seeds in a child until the time is over, at least one; returns the child's status. An overrun kills only the child. A leak belongs
/// to its last seed or an earlier one.
int played_until(const st::CpuSet& set, uint64_t first, Clock::time_point end) {
  journal().seed = first;
  return child_status(journal().seed, [&] {
    for (uint64_t seed = first; seed == first || (Clock::now() < end && journal().findings < kEnoughFindings); ++seed) play(set, seed);
  });
}

void play_class(const st::CpuSet& set, uint64_t first, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    const int status = played_until(set, first, end);
    if (status == 0) return;
    journal().finding(set.name, WIFSIGNALED(status) ? st::text("died of signal ", WTERMSIG(status))
                                                    : st::text("ended with status ", WEXITSTATUS(status)));
    first = journal().seed + 1;
  } while (Clock::now() < end && journal().findings < kEnoughFindings);
}

}  // namespace

int main(int count, char** words) {
  const TrialOptions options = trial_options(count, words);
  const std::string wanted = options.other("--set");
  auto sets = st::cpu_sets();  // requests tile registers if there are any; children inherit the permission
  if (!wanted.empty()) std::erase_if(sets, [&](const st::CpuSet& set) { return set.name != wanted; });
  if (options.only) trace_journal();
  std::string told;
  bool good = !sets.empty();
  for (const st::CpuSet& set : sets) {
    journal().problems = journal().findings = 0;
    if (options.only) {
      play(set, options.seed);
    } else {
      play_class(set, options.seed, options.seconds / static_cast<double>(sets.size()));
    }
    const uint64_t problems = journal().problems, findings = journal().findings;
    told += st::text(told.empty() ? "" : "; ", set.name, " ", problems, " problems, ", findings, " findings");
    good = good && findings == 0 && (options.only || problems > 0);  // a seed may give no problem, but not all of them
  }
  std::printf("%s\n", sets.empty() ? "no such kernel class here" : told.c_str());
  return good ? 0 : 1;
}
