// Lower case of the letters a to z, in any locale.
#pragma once

#include <string>
#include <string_view>

namespace st {

inline std::string lower_case(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return made;
}

}  // namespace st
