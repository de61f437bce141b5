#include "conformance.h"

namespace st::conformance {
namespace {

// A polynomial near zero, else an exponential.
const Cases tanh_cases(Op::tanh, {.each = 3}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
  s.add({s.normal({129}, 1e-3)});
  s.add_special({s.uniform({7, 5003}, -10, 10)});
});

// (1 - y)(1 + y): no step of it cancels inexactly.
const Cases tanh_backward_cases(Op::tanh_backward, {.each = 3}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, -1, 1), s.normal(shape)});
  s.add({s.uniform({129}, 0.9, 1), s.normal({129})});
  s.add({s.uniform({129}, -1, -0.9999), s.normal({129})});
});

}  // namespace
}  // namespace st::conformance
