#include "conformance.h"

namespace st::conformance {
namespace {

// Correctly rounded: the same bits everywhere.
const Cases sqrt_cases(Op::sqrt, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, 0.1, 3)});
  s.add_special({special_values()});
  s.add_special({s.uniform({129}, 0, 1e30)});
});

}  // namespace
}  // namespace st::conformance
