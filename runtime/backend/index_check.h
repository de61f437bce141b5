// Errors for indices in data that are out of range; the same message in every backend.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/shape.h"

namespace st {

/// Throws invalid_argument: "embedding: token 50300 at [1, 7] is outside the vocabulary 0..50256; <way out>". `element` is the row-major
/// position in a tensor of `shape`; `range` names the interval 0..size-1.
[[noreturn]] void fail_index(std::string_view op, std::string_view what, int64_t value, int64_t element, const Shape& shape,
                             std::string_view range, int64_t size, std::string_view way_out);

/// Checks for the three ops that read indices from data. Each passes if 0 <= value < size.
inline void check_token(std::string_view op, int64_t value, int64_t element, const Shape& shape, int64_t size) {
  if (value < 0 || value >= size) {
    fail_index(op, "token", value, element, shape, "the vocabulary", size, "check the tokenizer and the weight's first dimension");
  }
}

inline void check_target(std::string_view op, int64_t value, int64_t element, const Shape& shape, int64_t size) {
  if (value < 0 || value >= size) {
    fail_index(op, "target", value, element, shape, "the classes", size, "mark a row without a target with ignore_index");
  }
}

inline void check_index(std::string_view op, int64_t value, int64_t element, const Shape& shape, int64_t size) {
  if (value < 0 || value >= size) {
    fail_index(op, "index", value, element, shape, "the axis", size, "negative indices do not count from the end here");
  }
}

}  // namespace st
