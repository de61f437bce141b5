// A fuzzer of the C ABI: sequences of calls with live, stale, foreign and NULL handles and hostile arguments, on tiny models. Nothing may
// crash, leak, hang, or end as ST_INTERNAL; when all is destroyed no handle lives and everything lent is released.
//
// With clang's libFuzzer (ST_LIBFUZZER): api_sequences -max_total_time=60. Otherwise by a seeded generator, best under the asan preset:
//   api_sequences --seconds 60 --seed 1      each seed in a child process; findings are told with their seed, and the rest goes on
//     --symbols FILE                         and no function of the list is left out
//   api_sequences --only 1234                that seed alone, in this process; ST_FUZZ_TRACE=1 tells each call
#include "api_calls.h"
#include "call_tally.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  st::fuzz::World world(data, size);
  st::fuzz::set_up(world);
  for (int calls = 0; calls < 100 && !world.bytes.empty(); ++calls) st::fuzz::call_something(world);
  return 0;
}

#ifndef ST_LIBFUZZER
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <random>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kHangSeconds = 60, kSeedsPerChild = 100;

void play(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> input(256 + random() % 4000);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

/// Plays seeds from *at on in a child, which moves *at along; how the child ended.
int child_status(volatile uint64_t* at, uint64_t end) {
  const pid_t child = fork();  // this process never calls the library, so the child may
  if (child == 0) {
    while (*at < end) {
      play(*at);
      *at = *at + 1;
    }
    std::exit(0);  // the leak check is an exit handler
  }
  uint64_t seen = *at;
  auto since = Clock::now();
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (*at != seen) {
      seen = *at;
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

}  // namespace

int main(int count, char** words) {
  uint64_t first = 1;
  double seconds = 10;
  const char* symbols = nullptr;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--seed") == 0) first = std::strtoull(words[i + 1], nullptr, 10);
    if (std::strcmp(words[i], "--seconds") == 0) seconds = std::strtod(words[i + 1], nullptr);
    if (std::strcmp(words[i], "--symbols") == 0) symbols = words[i + 1];
    if (std::strcmp(words[i], "--only") == 0) {
      play(std::strtoull(words[i + 1], nullptr, 10));
      return 0;
    }
  }
  st::fuzz::share_tally();
  void* shared = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  auto* at = static_cast<volatile uint64_t*>(shared);
  *at = first;
  int findings = 0;
  const auto start = Clock::now();
  const st::fuzz::CallTally& tally = st::fuzz::tally();
  const auto missed = [&] { return symbols == nullptr ? std::string() : tally.missed(symbols); };
  const auto goes_on = [&] {  // a slow machine needs longer to come round to everything
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    return passed < seconds || (passed < 4 * seconds && !missed().empty());
  };
  while (goes_on()) {
    const uint64_t begin = *at;
    if (child_status(at, begin + kSeedsPerChild) == 0) continue;
    ++findings;
    const bool at_end = *at == begin + kSeedsPerChild;  // a leak, told when the child ended
    std::fprintf(stderr, "seed %llu%s: again with --only\n", static_cast<unsigned long long>(*at),
                 at_end ? " or one of 100 before it" : "");
    if (!at_end) *at = *at + 1;
  }
  std::printf("%llu sequences, %llu calls of %d functions, %d findings\n", static_cast<unsigned long long>(*at - first),
              static_cast<unsigned long long>(tally.calls()), tally.functions(), findings);
  if (!missed().empty()) std::printf("not covered:%s\n", missed().c_str());
  return findings == 0 && missed().empty() ? 0 : 1;
}
#endif
