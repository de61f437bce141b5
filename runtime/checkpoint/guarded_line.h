// A JSON object on one line whose last member is the CRC32C of every byte before it. The manifest and `latest` are such lines.
//   {"format":...,"tensors":[...],"crc32c":"0a1b2c3d"}\n          of the bytes {"format":...,"tensors":[...]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace st {

/// `object`: a JSON object without the checksum, as JsonLine::text() returns it; not empty.
std::string guard_line(std::string object);

/// Throws corrupt, with `file` in the message and error.place, unless every byte is as guard_line() wrote it.
void check_guarded_line(std::string_view line, std::string_view file);

/// 8 hexadecimal digits, lower case.
std::string hex8(uint32_t value);
/// nullopt if it is not in the form that hex8() writes.
std::optional<uint32_t> hex8_value(std::string_view digits);

}  // namespace st
