// CRC-32C (Castagnoli, RFC 3720 appendix B.4): guards each tensor of a checkpoint against a disk or a copy that went wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace st {

/// Of `bytes`, going on from `crc` of what came before: crc32c(b, crc32c(a)) is the crc of a and b together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The crc of a and b together, from those of each: for who has only one of them. Takes microseconds.
uint32_t crc32c_combine(uint32_t crc_of_a, uint32_t crc_of_b, int64_t bytes_of_b);

/// The ways to compute it, the fastest first: crc32c() takes the first that this machine has. The last one runs anywhere; all give the
/// same.
struct Crc32cWay {
  const char* name;
  bool (*is_here)();
  uint32_t (*run)(std::span<const std::byte> bytes, uint32_t crc);
};
std::span<const Crc32cWay> crc32c_ways();

}  // namespace st
