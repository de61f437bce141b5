// Which tokens train, which validate, and how they are cut into windows.
#pragma once

#include <cstdint>
#include <string_view>

namespace st {

/// Tokens at positions [first, first + count).
struct TokenRange {
  int64_t first = 0, count = 0;

  /// Number of windows of `context` inputs. Window i reads tokens [i * context, i * context + context]: the inputs and, shifted by one, the
  /// targets. Windows share only one token: a window's last target is the next one's first input. Tokens left at the end are not used.
  int64_t windows(int64_t context) const { return count > 0 ? (count - 1) / context : 0; }
};

struct Split {
  TokenRange train, validation;
};

/// The last `fraction` of the tokens validates: a contiguous range, because windows drawn from everywhere would have neighbours that were
/// trained on. Rounded down to whole tokens, but at least one window. A fraction of 0 leaves all to training. Throws invalid_argument with
/// `what` (the data's path), the available and the needed tokens.
Split split_tokens(int64_t tokens, double fraction, int64_t context, std::string_view what);

}  // namespace st
