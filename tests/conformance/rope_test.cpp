#include "conformance.h"

namespace st::conformance {
namespace {

// Angles are computed in fp64 or nearly so: two products and a sum, which may cancel.
const Cases rope_cases(Op::rope, {.each = 2, .largest = 2}, [](Suite& s) {
  const std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16};  // in f64 the rounding of the angle itself shows
  const Shape inputs[] = {{1, 1, 1, 2}, {2, 7, 3, 8}, {1, 37, 1, 6}, {0, 3, 2, 4}, {1, 0, 2, 4}, {2, 129, 4, 64}, {1, 3, 2, 0}};
  for (const Shape& x : inputs)
    for (const bool inverse : {false, true}) {
      s.add({s.normal(x)}, {{"inverse", inverse}}).dtypes = dtypes;
      s.add({s.normal(x)}, {{"inverse", inverse}, {"offset", int64_t{1000}}, {"base", 500.0}}).dtypes = dtypes;
    }
});

}  // namespace
}  // namespace st::conformance
