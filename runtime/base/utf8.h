// UTF-8 as the standard has it (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace st {

/// Bytes of the character that `text` starts with: 1 to 4; 0 when these bytes are not one (or `text` is empty).
size_t utf8_length(std::string_view text);

/// Position of the first byte that is not part of a character, or text.size().
size_t utf8_valid_until(std::string_view text);

}  // namespace st
