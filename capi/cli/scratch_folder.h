// A temporary folder for files that two processes of a benchmark share; removed at the end.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "failure.h"

namespace cli {

struct ScratchFolder {
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "scaletrain-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure(kFailed, "bench: cannot make a folder in " + pattern);
    path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path path;
};

}  // namespace cli
