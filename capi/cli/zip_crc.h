// The checksum of zip archives.
#pragma once

#include <cstdint>
#include <string_view>

namespace cli {

/// CRC-32 as in zip and zlib, continued from `so_far`.
uint32_t zip_crc(std::string_view bytes, uint32_t so_far = 0);

}  // namespace cli
