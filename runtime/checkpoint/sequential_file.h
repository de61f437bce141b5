// A file that is written front to back and is durable once it is finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/os/file_access.h"
#include "checkpoint/write_windows.h"

namespace st {

/// Writes a large file past the page cache if possible: the system's copy through the cache would slow a training step by as long as the
/// disk takes. Its writer prepares the next bytes meanwhile.
class SequentialFile {
 public:
  /// `path` must not exist; `size`: the final size. Borrows `windows`, which serve one file at a time.
  SequentialFile(const std::string& path, int64_t size, WriteWindows& windows);
  ~SequentialFile() { windows_.abandon(); }
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;

  /// Borrows the bytes for the call. Throws io with path, offset and reason, also for bytes appended earlier.
  void append(std::span<const std::byte> bytes);
  /// Syncs and closes the file; returns its size.
  int64_t finish();

 private:
  void append_through_cache(std::span<const std::byte> bytes);

  os::OutputFile file_;
  WriteWindows& windows_;
  bool is_direct_;
  int64_t end_ = 0, begun_ = 0, written_ = 0;  // bytes appended; bytes whose write-back has begun; bytes on the disk
};

}  // namespace st
