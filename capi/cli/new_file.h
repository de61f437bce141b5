// A file that replaces another one only when it is complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

/// The regular file, existing or not, to which `path` leads through its links; empty if it leads to a device, a pipe or an open descriptor.
std::string file_reached_by(const std::string& path);

class NewFile {
 public:
  /// Writes a temporary file in the folder of the file to which `path` leads through its links, and keeps that file's mode. Writes directly
  /// to a device or a pipe. Throws Failure(kRefused) if it cannot be created.
  explicit NewFile(std::string path);
  /// Without finish(): removes the temporary file.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Throws Failure(kFailed) with the system's reason.
  void add(std::string_view bytes);
  int64_t size() const { return size_; }
  /// Syncs to disk, then renames into place.
  void finish();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, target_, temporary_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace cli
