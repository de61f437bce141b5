#include "conformance.h"

namespace st::conformance {
namespace {

// A polynomial against libm; relative to ln x itself, also near 1.
const Cases log_cases(Op::log, {.each = 4}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, 0.1, 3)});
  s.add_special({special_values()});
  s.add_special({s.uniform({129}, 0.999, 1.001)});
  s.add_special({s.uniform({129}, 0, 1e30)});
});

}  // namespace
}  // namespace st::conformance
