#include "data/holdout.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace st {

Split split_tokens(int64_t tokens, double fraction, int64_t context, std::string_view what) {
  check(context >= 1 && context < (int64_t{1} << 31), "data: the context must be 1 to 2147483647 tokens, got ", context);
  check(fraction >= 0 && fraction < 1, "data: the validation fraction must be at least 0 and below 1, got ", fraction);
  const int64_t window = context + 1;  // the last target is one token after the inputs
  check(tokens >= window, "data: ", what, " has ", tokens, " tokens; a sequence of context ", context, " needs ", window,
        "; give more text or a shorter --context");
  if (fraction == 0) return {{0, tokens}, {tokens, 0}};
  const auto tail = static_cast<int64_t>(std::floor(fraction * static_cast<double>(tokens)));
  const int64_t validation = std::max(tail, window);
  check(tokens - validation >= window, "data: ", what, " has ", tokens, " tokens; with a validation fraction of ", fraction,
        " and context ", context, ", ", validation, " of them validate and ", tokens - validation, " are left for training, which needs ",
        window, "; give more text, a shorter --context or --validation 0");
  return {{0, tokens - validation}, {tokens - validation, validation}};
}

}  // namespace st
