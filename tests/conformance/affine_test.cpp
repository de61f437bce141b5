#include "conformance.h"

namespace st::conformance {
namespace {

// scale and shift are rounded to fp32 first, or not; where the sum cancels, that shows in the largest.
const Cases affine_cases(Op::affine, {.each = 2, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"scale", 2.5}}, Attrs{{"scale", -0.1}, {"shift", 0.3}}, Attrs{{"shift", 1.0}}}) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape)}, attrs);
    s.add_special({special_values()}, attrs);
  }
});

}  // namespace
}  // namespace st::conformance
