// A file that takes another's place when it is whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

/// The regular file, there or not yet, that opening `path` reaches by its links; empty where it reaches a device, a pipe or an open
/// descriptor.
std::string file_reached_by(const std::string& path);

class NewFile {
 public:
  /// Written under another name in the folder of the file that `path` reaches by its links, whose mode it keeps; a device or a pipe is
  /// written directly. Throws Failure(kRefused) where it cannot be made.
  explicit NewFile(std::string path);
  /// Without finish(): removes what there is of it.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Throws Failure(kFailed) with what the disk says.
  void add(std::string_view bytes);
  int64_t size() const { return size_; }
  /// On the disk, then in its place.
  void finish();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, target_, beside_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace cli
