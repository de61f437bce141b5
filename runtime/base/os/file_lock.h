// An advisory lock on a file.
#pragma once

#include <string>

namespace st::os {

/// One process at a time, by an advisory lock on a file that stays: `path` is made if need be. Waits at most `patience` seconds, and throws
/// io with path and reason where the file cannot be had or is held for longer.
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
