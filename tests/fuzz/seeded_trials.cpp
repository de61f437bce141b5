#include "seeded_trials.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

namespace st::fuzz {

TrialOptions trial_options(int count, char** words) {
  TrialOptions options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    if (name == "--seconds")
      options.seconds = std::strtod(words[i + 1], nullptr);
    else if (name == "--seed" || name == "--only")
      options.seed = std::strtoull(words[i + 1], nullptr, 10);
    else
      options.others[name] = words[i + 1];
    options.only = options.only || name == "--only";
  }
  return options;
}

int child_status(const std::atomic<uint64_t>& at, const std::function<void()>& play) {
  using Clock = std::chrono::steady_clock;
  constexpr int kHangSeconds = 60;
  const pid_t child = fork();
  if (child == 0) {
    play();
    std::exit(0);  // the leak check is an exit handler
  }
  uint64_t seen = at;
  auto since = Clock::now();
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (at != seen) {
      seen = at;
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

}  // namespace st::fuzz
