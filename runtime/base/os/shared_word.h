// A word of memory that several processes have mapped: they sleep on it, and the system says in it when a thread has died.
#pragma once

#include <atomic>
#include <cstdint>

namespace st::os {

/// Sleeps while the word is `value`, until woken, at most so long; may return for no reason.
void sleep_while(const std::atomic<uint32_t>& word, uint32_t value, double seconds);
/// All threads of all processes that sleep on it.
void wake_sleepers(const std::atomic<uint32_t>& word);

/// A word that says whether the thread which owns it is alive. However it ends (a kill, an exit, exec), the system sets kOwnerDied in the
/// word, at once: before it has even given back the process's memory. A forked child has no part in it. One object a thread, made and
/// destroyed by that thread; meanwhile it takes no robust mutex (pthread_mutexattr_setrobust), which is told of in the same way.
class OwnedWord {
 public:
  static constexpr uint32_t kOwnerDied = 1U << 30;

  /// Throws unavailable where the system has no such thing.
  explicit OwnedWord(std::atomic<uint32_t>& word);
  ~OwnedWord();
  OwnedWord(const OwnedWord&) = delete;
  OwnedWord& operator=(const OwnedWord&) = delete;

  /// Writes this thread into the word, if that is 0; else false.
  bool take();

 private:
  // What the system reads when the thread ends (struct robust_list_head): a list of words that is always empty, and one more.
  struct Head {
    Head* next = this;
    long offset = 0;
    std::atomic<uint32_t>* word = nullptr;
  };
  Head head_;
  std::atomic<uint32_t>& word_;
  void* of_thread_ = nullptr;  // the C library's own
};

}  // namespace st::os
