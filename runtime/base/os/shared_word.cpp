#include "base/os/shared_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "base/os/machine.h"

namespace st::os {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
static_assert(OwnedWord::kOwnerDied == FUTEX_OWNER_DIED);

void sleep_while(const std::atomic<uint32_t>& word, uint32_t value, double seconds) {
  const double most = std::clamp(seconds, 0.0, 1e6);
  timespec time{};
  time.tv_sec = static_cast<time_t>(most);
  time.tv_nsec = static_cast<long>((most - std::floor(most)) * 1e9);
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void wake_sleepers(const std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

OwnedWord::OwnedWord(std::atomic<uint32_t>& word) : word_(word) {
  static_assert(sizeof(Head) == sizeof(robust_list_head));
  size_t bytes = 0;
  head_.word = &word;
  if (syscall(SYS_get_robust_list, 0, &of_thread_, &bytes) != 0 || syscall(SYS_set_robust_list, &head_, sizeof head_) != 0)
    fail(Code::unavailable, text("shared memory: the system does not report the death of threads (set_robust_list): ", reason_of(errno)));
}

OwnedWord::~OwnedWord() { syscall(SYS_set_robust_list, of_thread_, sizeof(robust_list_head)); }

bool OwnedWord::take() {
  uint32_t none = 0;
  return word_.compare_exchange_strong(none, static_cast<uint32_t>(gettid()));
}

}  // namespace st::os
