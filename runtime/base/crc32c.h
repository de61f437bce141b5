// CRC-32C (Castagnoli, RFC 3720 appendix B.4): guards each tensor of a checkpoint against a disk or a copy that went wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace st {

/// Of `bytes`, going on from `crc` of what came before: crc32c(b, crc32c(a)) is the crc of a and b together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The same by table alone, for machines without the instruction (and to test the other against).
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace st
