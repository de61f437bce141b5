#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace st {
namespace {

using Table = std::array<std::array<uint32_t, 256>, 8>;

// Row k answers: what does this byte do to the crc when k more zero bytes follow? So eight bytes are eight look-ups without a chain.
constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[k - 1][byte];
      table[k][byte] = (before >> 8) ^ table[0][before & 0xFF];
    }
  return table;
}

constexpr Table kTable = make_table();

uint32_t byte_at(std::span<const std::byte> bytes, size_t i) { return static_cast<uint32_t>(bytes[i]); }

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t state = ~crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  auto last = static_cast<uint32_t>(state);
  for (; i < bytes.size(); ++i) last = _mm_crc32_u8(last, static_cast<unsigned char>(bytes[i]));
  return ~last;
}

#endif

}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const uint32_t low = crc ^ (byte_at(bytes, i) | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2) << 16 | byte_at(bytes, i + 3) << 24);
    crc = kTable[7][low & 0xFF] ^ kTable[6][(low >> 8) & 0xFF] ^ kTable[5][(low >> 16) & 0xFF] ^ kTable[4][low >> 24] ^
          kTable[3][byte_at(bytes, i + 4)] ^ kTable[2][byte_at(bytes, i + 5)] ^ kTable[1][byte_at(bytes, i + 6)] ^
          kTable[0][byte_at(bytes, i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kTable[0][(crc ^ byte_at(bytes, i)) & 0xFF];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(bytes, crc);
#endif
  return crc32c_by_table(bytes, crc);
}

}  // namespace st
