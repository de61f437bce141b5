// A fuzzer of the C ABI: sequences of calls with live, stale, foreign and NULL handles and hostile arguments, on tiny models. No call may
// crash, leak, hang, or return ST_INTERNAL; when everything is destroyed, no handle is left and everything borrowed is released.
//
// With clang's libFuzzer (ST_LIBFUZZER): api_sequences -max_total_time=60. Otherwise by a seeded generator, best under the asan preset:
//   api_sequences --seconds 60 --seed 1      each seed in a child process; a finding names its seed, and the run continues
//     --symbols FILE                         also requires that every function of the list is covered
//   api_sequences --only 1234                only that seed, in this process; ST_FUZZ_TRACE=1 prints each call
#include "api_calls.h"
#include "call_tally.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  st::fuzz::World world(data, size);
  st::fuzz::set_up(world);
  for (int calls = 0; calls < 100 && !world.bytes.empty(); ++calls) st::fuzz::call_something(world);
  return 0;
}

#ifndef ST_LIBFUZZER
#include <chrono>
#include <random>

#include "seeded_trials.h"

namespace {

constexpr int kSeedsPerChild = 100;

void play(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> input(256 + random() % 4000);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int count, char** words) {
  using Clock = std::chrono::steady_clock;
  const st::fuzz::TrialOptions options = st::fuzz::trial_options(count, words);
  if (options.only) return play(options.seed), 0;
  st::fuzz::share_tally();
  auto& at = st::fuzz::shared_zeros<std::atomic<uint64_t>>();
  at = options.seed;
  int findings = 0;
  const auto start = Clock::now();
  const st::fuzz::CallTally& tally = st::fuzz::tally();
  const std::string symbols = options.other("--symbols");
  const auto missed = [&] { return symbols.empty() ? std::string() : tally.missed(symbols.c_str()); };
  const auto goes_on = [&] {  // a slow machine needs longer to cover everything
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    return passed < options.seconds || (passed < 4 * options.seconds && !missed().empty());
  };
  while (goes_on()) {
    const uint64_t end = at + kSeedsPerChild;
    const auto play_some = [&] {
      for (; at < end; ++at) play(at);
    };
    if (st::fuzz::child_status(at, play_some) == 0) continue;
    ++findings;
    const bool at_end = at == end;  // a leak, reported when the child ended
    std::fprintf(stderr, "seed %llu%s: again with --only\n", static_cast<unsigned long long>(at), at_end ? " or one of 100 before it" : "");
    if (!at_end) ++at;
  }
  std::printf("%llu sequences, %llu calls of %d functions, %d findings\n", static_cast<unsigned long long>(at - options.seed),
              static_cast<unsigned long long>(tally.calls()), tally.functions(), findings);
  if (!missed().empty()) std::printf("not covered:%s\n", missed().c_str());
  return findings == 0 && missed().empty() ? 0 : 1;
}
#endif
