// Two staging buffers for a file: one is written past the page cache while the other is filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/os/file_access.h"
#include "base/os/pages.h"
#include "base/work_queue.h"

namespace st {

/// Its memory and its writing thread are made at the first use and serve one file after the other.
class WriteWindows {
 public:
  static constexpr int64_t kBytes = 4 << 20;  // of each window; disks are equally fast from 1 to 16 MiB

  /// The window to fill. Throws out_of_memory.
  std::span<std::byte> open();
  /// Starts writing the open window; waits until the other one is written and opens it. The thread uses `file` until finish() or abandon().
  /// Throws what writing the other window threw.
  void write(os::OutputFile& file, int64_t offset);
  /// Waits until everything started is written; throws what that threw.
  void finish() { thread_.wait(write_); }
  void abandon() noexcept { thread_.drain(); }

 private:
  struct Write final : WorkQueue::Work {
    void run() override { file->write_at(offset, window); }

    os::OutputFile* file = nullptr;
    int64_t offset = 0;
    std::span<const std::byte> window;
  };

  os::Pages memory_;
  int64_t open_ = 0;  // offset of the open window in memory_
  Write write_;       // of the other window
  WorkQueue thread_;
};

}  // namespace st
