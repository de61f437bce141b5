// Folders of checkpoints for tests: created empty, can be corrupted, removed with the test.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "small_run.h"

namespace st::test {

class CheckpointFolder {
 public:
  /// The folder does not exist yet.
  CheckpointFolder() {
    static std::atomic<int> made{0};
    path_ = file_of("run" + std::to_string(made++), "");
    std::filesystem::remove(path_);
  }
  ~CheckpointFolder() {
    std::error_code nothing;
    std::filesystem::remove_all(path_, nothing);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const char* c_str() const { return path_.c_str(); }
  const std::string& path() const { return path_; }
  std::string in(const std::string& name) const { return path_ + "/" + name; }

  /// Flips one bit of a file, `from_end` bytes before its end.
  void spoil(const std::string& file, int64_t from_end = 1) const {
    std::fstream bytes(in(file), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(-from_end, std::ios::end);
    const int old = bytes.get();
    bytes.seekp(-from_end, std::ios::end);
    bytes.put(static_cast<char>(old ^ 1));
    EXPECT_TRUE(bytes.good()) << file;
  }

 private:
  std::string path_;
};

}  // namespace st::test
