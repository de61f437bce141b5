#include "conformance.h"

namespace st::conformance {
namespace {

// One exponential, one division.
const Cases silu_cases(Op::silu, {.each = 6}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
});

// 1 + x (1 - sigmoid) crosses zero: relative to the largest there.
const Cases silu_backward_cases(Op::silu_backward, {.each = 4, .largest = 4}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)});
  s.add({s.normal({129}, 8), s.normal({129})});
});

}  // namespace
}  // namespace st::conformance
