// A file that grows from its beginning and is on the disk when it is finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/os/file_access.h"
#include "checkpoint/write_windows.h"

namespace st {

/// A large one is written past the page cache where that is possible: through it, the system's copy takes a training step as much time as
/// the disk takes. Meanwhile its writer makes the next bytes ready.
class SequentialFile {
 public:
  /// `path` must not be there; `size` is what it will have. The windows stay the caller's, for one file at a time.
  SequentialFile(const std::string& path, int64_t size, WriteWindows& windows);
  ~SequentialFile() { windows_.abandon(); }
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;

  /// The bytes are the caller's again when it returns. Throws io with path, offset and reason, also of bytes that were appended before.
  void append(std::span<const std::byte> bytes);
  /// How many bytes there are, all of them on the disk.
  int64_t finish();

 private:
  void append_through_cache(std::span<const std::byte> bytes);

  os::OutputFile file_;
  WriteWindows& windows_;
  bool is_direct_;
  int64_t end_ = 0, begun_ = 0, written_ = 0;  // what there is, what is on its way to the disk, what has arrived
};

}  // namespace st
