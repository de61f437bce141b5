#include "checkpoint/guarded_line.h"

#include <span>

#include "base/crc32c.h"
#include "base/text.h"
#include "checkpoint/corrupt.h"

namespace st {
namespace {

constexpr std::string_view kGuard = ",\"crc32c\":\"", kEnd = "\"}\n", kHex = "0123456789abcdef";
constexpr size_t kDigits = 8, kTail = kGuard.size() + kDigits + kEnd.size();

uint32_t crc_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

}  // namespace

std::string guard_line(std::string object) {
  object.pop_back();  // the closing }
  const uint32_t crc = crc_of(object);
  object += text(kGuard, hex8(crc), kEnd);
  return object;
}

void check_guarded_line(std::string_view line, std::string_view file) {
  if (line.size() < kTail || !line.ends_with(kEnd) || line.substr(line.size() - kTail, kGuard.size()) != kGuard)
    throw_corrupt(file, "", text("has ", line.size(), " bytes and no checksum at its end: it was cut short, or is another file"));
  const std::string_view body = line.substr(0, line.size() - kTail);
  const auto written = hex8_value(line.substr(body.size() + kGuard.size(), kDigits));
  if (written != crc_of(body)) throw_corrupt(file, "", "its checksum (CRC32C) does not match its content: the file is damaged");
}

std::string hex8(uint32_t value) {
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += kHex[value >> shift & 15];
  return out;
}

std::optional<uint32_t> hex8_value(std::string_view digits) {
  if (digits.size() != kDigits) return {};
  uint32_t value = 0;
  for (const char digit : digits) {
    const size_t found = kHex.find(digit);
    if (found == std::string_view::npos) return {};
    value = value << 4 | static_cast<uint32_t>(found);
  }
  return value;
}

}  // namespace st
