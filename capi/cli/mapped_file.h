// A file mapped read-only: an import takes no memory of the file's size.
#pragma once

#include <string>
#include <string_view>

namespace cli {

class MappedFile {
 public:
  /// Throws Failure(kRefused) if the file is missing, unreadable or not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string_view bytes_;
};

}  // namespace cli
