// A file that takes another's place when it is whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

class NewFile {
 public:
  /// Written beside `path`, under another name. Throws Failure(kRefused) where that cannot be made.
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

  std::string path_, beside_;
  int file_;
  int64_t size_ = 0;
};

}  // namespace cli
