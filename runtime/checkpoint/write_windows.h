// Two windows of a file's bytes: one is written past the page cache while the other is being filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/os/file_access.h"
#include "base/os/pages.h"
#include "base/pending.h"
#include "base/work_queue.h"

namespace st {

/// Its memory and its thread, which writes, are there from the first use on, for one file after the other.
class WriteWindows {
 public:
  static constexpr int64_t kBytes = 4 << 20;  // of each: 1 to 16 MiB take a disk as long

  /// To be filled. Throws out_of_memory.
  std::span<std::byte> open();
  /// Begins to write the open window. The other one is open when this returns, and `file` is the thread's until
  /// finish() or abandon(). Throws what writing the other one threw.
  void write(os::OutputFile& file, int64_t offset);
  /// All has been written that was begun; throws what that threw.
  void finish() { written_.wait(-1); }
  void abandon() noexcept { thread_.drain(); }

 private:
  os::Pages memory_;
  int64_t open_ = 0;  // where the open one begins
  Pending written_;   // the other one
  WorkQueue thread_;
};

}  // namespace st
