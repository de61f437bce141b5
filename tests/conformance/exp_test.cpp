#include "conformance.h"

namespace st::conformance {
namespace {

// A polynomial against libm, right to the ends of the range: e^88.7 is the last finite one.
const Cases exp_cases(Op::exp, {.each = 2}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
  s.add({s.normal({129}, 20)});
  s.add_special({s.uniform({7, 5003}, -87.3, 88.72)});
  s.add_special({s.uniform({129}, 88, 90)});
  s.add_special({s.uniform({129}, -105, -86)});
});

}  // namespace
}  // namespace st::conformance
