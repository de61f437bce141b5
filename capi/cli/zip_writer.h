// Writes a zip archive as PyTorch does: uncompressed, each entry's bytes at a multiple of 64 in the file, as torch.load with mmap requires.
// (PKWARE's APPNOTE 6.3, with ZIP64.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "new_file.h"

namespace cli {

class ZipWriter {
 public:
  /// `path` gets the new content when finish() returns, and keeps the old until then. Each call throws as NewFile's does.
  explicit ZipWriter(const std::string& path) : file_(path) {}

  void entry(const std::string& name, std::string_view bytes);
  void finish();

 private:
  struct Row {
    std::string name;
    int64_t at = 0, bytes = 0;
    uint32_t crc = 0;
  };

  NewFile file_;
  std::vector<Row> rows_;
};

}  // namespace cli
