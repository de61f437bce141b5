#include "conformance.h"

namespace st::conformance {
namespace {

// One correctly rounded operation: the same bits everywhere.
const Cases div_cases(Op::div, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.uniform(shape, 0.2, 3)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.uniform(b, 0.2, 3)});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), Tensor::of({14, 1}, {1, 0, -1, 2, 3, -2, 0.5, 1e30, -1e30, 7, 8, 9, 10, 11})});
});

}  // namespace
}  // namespace st::conformance
