// A tuning cache for a test: its own file, absent before and removed after it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "held.h"

namespace st::test {

struct TuningCacheFile {
  TuningCacheFile() { remove(); }
  ~TuningCacheFile() { remove(); }
  TuningCacheFile(const TuningCacheFile&) = delete;
  TuningCacheFile& operator=(const TuningCacheFile&) = delete;

  /// A context that uses the file.
  HeldContext context(st_context_options options) const {
    options.tuning_cache = path.c_str();
    HeldContext made;
    EXPECT_TRUE(works(st_context_create(&options, made.out())));
    return made;
  }

  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("tuning-cache-" + std::to_string(getpid()));

 private:
  void remove() const {
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(path.string() + ".lock");
  }
};

}  // namespace st::test
