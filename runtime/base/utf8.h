// UTF-8 as in the standard (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace st {

/// Bytes of the character at the start of `text`, 1 to 4; 0 when `text` is empty or starts with an invalid sequence.
size_t utf8_length(std::string_view text);

/// Position of the first byte that is not part of a valid character, or text.size().
size_t utf8_valid_until(std::string_view text);

}  // namespace st
