#include "conformance.h"

namespace st::conformance {
namespace {

// One exponential, one division.
const Cases sigmoid_cases(Op::sigmoid, {.each = 6}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
  s.add({s.normal({129}, 20)});
});

// Three products.
const Cases sigmoid_backward_cases(Op::sigmoid_backward, {.each = 3}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, 0, 1), s.normal(shape)});
  s.add({s.uniform({129}, 0, 1), s.normal({129})});
});

}  // namespace
}  // namespace st::conformance
