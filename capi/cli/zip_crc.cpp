#include "zip_crc.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace cli {
namespace {

/// Slicing by 8 (Intel, 2006): the step of a byte, and of a byte followed by 1 to 7 zeros.
struct CrcTables {
  constexpr CrcTables() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xEDB88320U : crc >> 1;
      rows[0][i] = crc;
    }
    for (size_t row = 1; row < 8; ++row)
      for (size_t i = 0; i < 256; ++i) rows[row][i] = rows[row - 1][i] >> 8 ^ rows[0][rows[row - 1][i] & 0xFF];
  }
  std::array<std::array<uint32_t, 256>, 8> rows{};
};
constexpr CrcTables kCrcTables;

}  // namespace

uint32_t zip_crc(std::string_view bytes, uint32_t so_far) {
  const auto& rows = kCrcTables.rows;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  uint32_t crc = ~so_far;
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= rows[7 - i][word >> 8 * i & 0xFF];
  }
  for (; left > 0; ++at, --left) crc = crc >> 8 ^ rows[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

}  // namespace cli
