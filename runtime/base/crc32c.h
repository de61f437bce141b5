// CRC-32C (Castagnoli, RFC 3720 appendix B.4): detects damage to a checkpoint's tensors by a disk or a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace st {

/// The crc of `bytes` that follow data with the crc `crc`: crc32c(b, crc32c(a)) is the crc of a and b together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The crc of a and b together from the crc of each, without their bytes. Takes microseconds.
uint32_t crc32c_combine(uint32_t crc_of_a, uint32_t crc_of_b, int64_t bytes_of_b);

/// The implementations, fastest first; all give the same result. crc32c() uses the first that this machine supports; the last runs
/// anywhere.
struct Crc32cImplementation {
  const char* name;
  bool (*is_here)();
  uint32_t (*run)(std::span<const std::byte> bytes, uint32_t crc);
};
std::span<const Crc32cImplementation> crc32c_ways();

}  // namespace st
