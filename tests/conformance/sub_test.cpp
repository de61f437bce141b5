#include "conformance.h"

namespace st::conformance {
namespace {

// One correctly rounded operation: the same bits everywhere.
const Cases sub_cases(Op::sub, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.normal(b)});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), Tensor::of({14, 1}, {1, 0, -1, 2, 3, -2, 0.5, 1e30, -1e30, 7, 8, 9, 10, 11})});
  s.add_special({s.integers({3, 37}, 100), s.integers({37}, 100)});
  s.add_special({s.integers({129}, 100, DType::i64), s.integers({1}, 100, DType::i64)});
});

}  // namespace
}  // namespace st::conformance
