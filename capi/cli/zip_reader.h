// A zip archive as PyTorch writes it: uncompressed entries. (PKWARE's APPNOTE 6.3, with ZIP64.)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cli {

class ZipReader {
 public:
  /// Reads the directory of an archive in memory. Throws Failure(kRefused), with `file` at the start of the message, if it is no archive,
  /// or is truncated or compressed, or has duplicate entries or entries beyond its end.
  ZipReader(std::string_view archive, std::string file);

  /// An entry's bytes, after a check of its CRC. Throws Failure(kRefused) if it is missing or damaged.
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
