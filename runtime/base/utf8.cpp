#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace st {
namespace {

bool within(std::string_view text, size_t i, unsigned low, unsigned high) {
  if (i >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[i]);
  return low <= byte && byte <= high;
}

bool continues(std::string_view text, size_t i) { return within(text, i, 0x80, 0xBF); }

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return continues(text, 1) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // below: an overlong form
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // above: a surrogate
    return within(text, 1, low, high) && continues(text, 2) ? 3 : 0;
  }
  if (first > 0xF4) return 0;
  const unsigned low = first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
  return within(text, 1, low, high) && continues(text, 2) && continues(text, 3) ? 4 : 0;
}

size_t utf8_valid_until(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    uint64_t word = 0;  // eight ASCII characters at a time
    if (text.size() - i >= sizeof word) {
      std::memcpy(&word, text.data() + i, sizeof word);
      if ((word & 0x8080808080808080) == 0) {
        i += sizeof word;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return text.size();
}

}  // namespace st
