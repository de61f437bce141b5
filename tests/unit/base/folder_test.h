// A test fixture with its own folder, which is removed when the test ends.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/machine.h"
#include "base/text.h"

namespace st {

inline std::string content_of_file(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();  // by blocks: one character at a time took half of some programs' time where a sanitizer looks
  return std::move(content).str();
}

/// Number of file descriptors that this process has open.
inline size_t open_files() { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})); }

class FolderTest : public testing::Test {
 protected:
  FolderTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                text("st_", testing::UnitTest::GetInstance()->current_test_info()->test_suite_name(), "_", os::process_id())) {
    renew();
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  /// Empties it.
  void renew() const {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file, creating the folders above it.
  std::string put(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return path(name);
  }
  std::string content_of(const std::filesystem::path& name) const { return content_of_file(folder_ / name); }

  const std::filesystem::path folder_;
};

}  // namespace st
