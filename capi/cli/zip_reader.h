// A zip archive as PyTorch makes it: nothing compressed, each entry's bytes as they are. (PKWARE's APPNOTE 6.3, with ZIP64.)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cli {

class ZipReader {
 public:
  /// Reads the directory of an archive that lies in memory. Throws Failure(kRefused), with `file` in front of what is wrong: no archive,
  /// cut short, compressed, entries beyond its end or twice.
  ZipReader(std::string_view archive, std::string file);

  /// An entry's bytes, its checksum proved. Throws Failure(kRefused) where it is not there or is not as it was written.
  std::string_view entry(const std::string& name) const;
  bool has(const std::string& name) const { return entries_.contains(name); }
  const std::string& first_name() const { return first_name_; }

 private:
  struct Entry {
    std::string_view bytes;
    uint32_t crc = 0;
  };

  std::string file_, first_name_;
  std::map<std::string, Entry> entries_;
};

}  // namespace cli
