// Random matrix products on every kernel class of this CPU: values against double precision, bits across threads, tiles, packing, rows and
// layouts, and not a byte touched beyond an operand.
//
//   random_products --seconds 5 --seed 1     all classes, each its share of the time; --set amx_bf16: that one alone
//   random_products --only 1234              that seed alone, in this process; each run is told
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/float_mode.h"
#include "base/text.h"
#include "product_checks.h"
#include "trial_journal.h"

namespace {

using namespace st::fuzz;
using Clock = std::chrono::steady_clock;
constexpr int kHangSeconds = 60;
constexpr uint64_t kEnoughFindings = 20;  // of one class

struct Options {
  double seconds = 5;
  uint64_t seed = 1;
  std::string set;
  bool only = false;
};

Options options_of(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i], value = words[i + 1];
    if (name == "--seconds") options.seconds = std::strtod(value.c_str(), nullptr);
    if (name == "--seed" || name == "--only") options.seed = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "--only") options.only = true;
    if (name == "--set") options.set = value;
  }
  return options;
}

void play(const st::CpuSet& set, uint64_t seed) {
  const st::FloatMode mode;  // as every caller of the kernels holds one
  journal().seed = seed;
  if (play_product(set, seed)) ++journal().problems;
}

/// Plays seeds in a child until the time is over, one seed at least; how the child ended. An overrun kills the child alone; a leak is told
/// when it exits, of its last seed or one before.
int child_status(const st::CpuSet& set, uint64_t first, Clock::time_point end) {
  journal().seed = first;
  const pid_t child = fork();  // this process starts no thread, so the child may
  if (child == 0) {
    for (uint64_t seed = first; seed == first || (Clock::now() < end && journal().findings < kEnoughFindings); ++seed) play(set, seed);
    std::exit(0);
  }
  uint64_t seen = first;
  auto since = Clock::now();
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (const uint64_t now = journal().seed; now != seen) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since > std::chrono::seconds(kHangSeconds)) {
      std::fprintf(stderr, "HANG: no end after %d s\n", kHangSeconds);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return status;
    }
    usleep(2000);
  }
}

void play_class(const st::CpuSet& set, uint64_t first, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    const int status = child_status(set, first, end);
    if (status == 0) return;
    journal().finding(set.name, WIFSIGNALED(status) ? st::text("died of signal ", WTERMSIG(status))
                                                    : st::text("ended with status ", WEXITSTATUS(status)));
    first = journal().seed + 1;
  } while (Clock::now() < end && journal().findings < kEnoughFindings);
}

}  // namespace

int main(int count, char** words) {
  const Options options = options_of(count, words);
  auto sets = st::cpu_sets();  // asks for tile registers where there are some; children inherit the answer
  if (!options.set.empty()) std::erase_if(sets, [&](const st::CpuSet& set) { return set.name != options.set; });
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
    good = good && findings == 0 && (options.only || problems > 0);  // a seed may be no problem, but not all of them
  }
  std::printf("%s\n", sets.empty() ? "no such kernel class here" : told.c_str());
  return good ? 0 : 1;
}
