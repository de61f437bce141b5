// An advisory lock on a file.
#pragma once

#include <string>

namespace st::os {

/// Excludes other processes by an advisory lock on `path`, which is created if needed and never removed. Waits at most `patience` seconds;
/// throws io with path and reason when the file cannot be opened or stays locked.
class FileLock {
 public:
  FileLock(const std::string& path, double patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace st::os
