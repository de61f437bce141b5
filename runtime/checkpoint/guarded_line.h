// A JSON object on one line that guards itself: its last member is the CRC32C of every byte before it. The manifest is one, and `latest`.
//   {"format":...,"tensors":[...],"crc32c":"0a1b2c3d"}\n          of the bytes {"format":...,"tensors":[...]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace st {

/// `object` is such an object without the guard, as JsonLine::text() gives it: not empty.
std::string guard_line(std::string object);

/// Throws corrupt, with `file` in message and place, unless every byte is as guard_line() wrote it.
void check_guarded_line(std::string_view line, std::string_view file);

/// 8 digits, lower case.
std::string hex8(uint32_t value);
/// None: it is not as hex8() writes it.
std::optional<uint32_t> hex8_value(std::string_view digits);

}  // namespace st
