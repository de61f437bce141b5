#include "conformance.h"

namespace st::conformance {
namespace {

// A choice: the same bits everywhere.
const Cases compare_cases(Op::compare, {}, [](Suite& s) {
  for (const char* test : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    const Attrs attrs = {{"test", std::string(test)}};
    for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.normal(b)}, attrs);
    s.add({s.integers({3, 37}, 3), s.integers({37}, 3)}, attrs);
    s.add({s.integers({129}, 3, DType::i64), s.integers({129}, 3, DType::i64)}, attrs);
    s.add({special_values(), special_values()}, attrs);
    s.add({special_values(), Tensor::of({14, 1}, {0, -0.0, 1, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}, attrs);
  }
});

}  // namespace
}  // namespace st::conformance
