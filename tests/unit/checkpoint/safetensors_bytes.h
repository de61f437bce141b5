// The bytes of a safetensors file, built by hand and read as a stream.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "checkpoint/safetensors.h"

namespace st {

inline std::string with_length(const std::string& json, const std::string& data = "") {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return file + json + data;
}

/// Returns at most `most` bytes per call.
inline ReadBytes reader_of(const std::string& bytes, size_t most) {
  return [&bytes, most, at = size_t{0}](std::span<std::byte> out) mutable {
    const size_t size = std::min({most, out.size(), bytes.size() - at});
    std::memcpy(out.data(), bytes.data() + at, size);
    at += size;
    return size;
  };
}

}  // namespace st
