// Which tokens train and which validate, and how they are cut into windows.
#pragma once

#include <cstdint>
#include <string_view>

namespace st {

/// Tokens at positions [first, first + count).
struct TokenRange {
  int64_t first = 0, count = 0;

  /// Windows of `context` inputs: window i reads tokens [i * context, i * context + context], the inputs and, one further on, the targets.
  /// They do not overlap, but that a window's last target is the next one's first input. Tokens left over at the end are not used.
  int64_t windows(int64_t context) const { return count > 0 ? (count - 1) / context : 0; }
};

struct Split {
  TokenRange train, validation;
};

/// The last `fraction` of the tokens validates: one piece, and not windows drawn from everywhere, whose neighbours would have been trained
/// on. It is rounded down to whole tokens, and up to one window. A fraction of 0 leaves all to training. Throws invalid_argument that names
/// `what` (the data's path), the tokens there are and those needed.
Split split_tokens(int64_t tokens, double fraction, int64_t context, std::string_view what);

}  // namespace st
