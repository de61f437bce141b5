#include "conformance.h"

namespace st::conformance {
namespace {

// The exponent magnifies the rounding of ln a, so kernels take it in double: one rounding to either side.
const Cases pow_cases(Op::pow, {.each = 1}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, 0.2, 5), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.uniform(a, 0.2, 5), s.normal(b)});
  s.add_special({Tensor::of({8}, {-2, -1.5, 0, 0, 3, -3, 1, -1}), Tensor::of({8}, {2, 3, 2, 0, 0, -2, 1000, 1001})});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), Tensor::of({1}, {2})});
  s.add_special({special_values(), Tensor::of({8, 1}, {0, 1, -1, 0.5, -0.5, 3, 1e3, -1e3})});
  s.add_special({s.uniform({129}, 0.5, 2), s.normal({129}, 60)});
});

}  // namespace
}  // namespace st::conformance
