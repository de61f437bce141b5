// The host's allocator with its books.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "held.h"

namespace st::test {

/// What is out, and which call is to fail. It must outlive the context.
class Ledger {
 public:
  st_context_options options() {
    auto made = filled(st_context_options_init);
    made.threads = 2;
    made.alloc = [](void* user, size_t bytes, size_t align) { return static_cast<Ledger*>(user)->take(bytes, align); };
    made.free = [](void* user, void* memory) { static_cast<Ledger*>(user)->give_back(memory); };
    made.memory_user = this;
    return made;
  }
  int64_t bytes() const { return bytes_; }
  int64_t calls() const { return calls_; }
  /// Counts anew; the `call`-th from now gives NULL, below 0 none.
  void fail_at(int64_t call) {
    calls_ = 0;
    fail_at_ = call;
  }
  size_t skew = 0;  // bytes past the alignment that answers are

 private:
  void* take(size_t bytes, size_t align) {
    const std::lock_guard lock(mutex_);
    if (calls_++ == fail_at_) return nullptr;
    EXPECT_GT(bytes, 0U);
    EXPECT_GE(align, 64U);
    auto* memory = static_cast<char*>(std::aligned_alloc(align, (bytes + 2 * align - 1) / align * align));
    std::fill_n(memory, bytes, '\x5A');  // nothing may count on zeros
    try {
      out_[memory + skew] = bytes;
    } catch (const std::bad_alloc&) {  // a test lets operator new fail
      std::free(memory);
      return nullptr;
    }
    bytes_ += static_cast<int64_t>(bytes);
    return memory + skew;
  }
  void give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = out_.find(static_cast<char*>(memory));
    ASSERT_NE(found, out_.end()) << "freed what was not handed out";
    bytes_ -= static_cast<int64_t>(found->second);
    std::free(found->first - skew);
    out_.erase(found);
  }

  std::mutex mutex_;
  std::map<char*, size_t> out_;
  int64_t bytes_ = 0, calls_ = 0, fail_at_ = -1;
};

}  // namespace st::test
