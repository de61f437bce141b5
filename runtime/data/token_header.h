// The first 32 bytes of a token file; the format is in README.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace st {

struct TokenHeader {
  static constexpr int64_t kBytes = 32;
  static constexpr int64_t kMaxVocabulary = (int64_t{1} << 31) - 1;  // ids are i32 in a graph

  int64_t width = 2;  // bytes of an id
  int64_t vocabulary = 0;
  int64_t count = 0;

  /// Whether a file starts like a token file.
  static bool is_at(std::span<const std::byte> file);
  /// Throws corrupt, with `path`, unless every field is in range and the file's size matches.
  static TokenHeader read(std::span<const std::byte> file, const std::string& path);

  std::array<std::byte, kBytes> bytes() const;
};

}  // namespace st
