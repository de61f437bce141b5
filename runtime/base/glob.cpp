#include "base/glob.h"

namespace st {

bool matches_glob(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  size_t after_star = std::string_view::npos, resume = 0;  // where the last * can match one more character
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace st
