// A word of memory mapped by several processes: threads sleep on it, and the system marks it when its owner thread dies.
#pragma once

#include <atomic>
#include <cstdint>

namespace st::os {

/// Sleeps while the word is `value`, until woken, at most `seconds`; may return without a reason.
void sleep_while(const std::atomic<uint32_t>& word, uint32_t value, double seconds);
/// Wakes all threads of all processes that sleep on it.
void wake_sleepers(const std::atomic<uint32_t>& word);

/// A word that says whether the thread that owns it is alive. However the thread ends (kill, exit, exec), the system sets kOwnerDied at
/// once, even before it frees the process's memory. A forked child does not own it. One object per thread, created and destroyed by that
/// thread, which must hold no robust mutex (pthread_mutexattr_setrobust) meanwhile: the system reports both through the same list.
class OwnedWord {
 public:
  static constexpr uint32_t kOwnerDied = 1U << 30;

  /// Throws unavailable where the system does not support it.
  explicit OwnedWord(std::atomic<uint32_t>& word);
  ~OwnedWord();
  OwnedWord(const OwnedWord&) = delete;
  OwnedWord& operator=(const OwnedWord&) = delete;

  /// Writes this thread's id into the word if the word is 0; else returns false.
  bool take();

 private:
  // Read by the system when the thread ends (struct robust_list_head): an always empty list of words, and one more word.
  struct Head {
    Head* next = this;
    long offset = 0;
    std::atomic<uint32_t>* word = nullptr;
  };
  Head head_;
  std::atomic<uint32_t>& word_;
  void* of_thread_ = nullptr;  // the C library's list
};

}  // namespace st::os
