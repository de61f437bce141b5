#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

// A choice: the same everywhere.
const Cases argmax_cases(Op::argmax, {}, [](Suite& s) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const bool keep : {false, true}) {
    const auto attrs = [&](int64_t axis) { return Attrs{{"axis", axis}, {"keep_dims", keep}}; };
    s.add({s.normal({37})}, attrs(-1));
    s.add({s.normal({3, 129})}, attrs(-1));
    s.add({s.normal({129, 3})}, attrs(0));
    s.add({s.normal({2, 5, 4})}, attrs(1));
    s.add({s.normal({3, 1})}, attrs(1));
    s.add({s.normal({0, 3})}, attrs(1));
    s.add({Tensor::of({4, 4}, {1, 3, 3, 2, nan, 5, nan, 9, -1, -1, -1, -1, -inf, -inf, inf, inf})}, attrs(1));  // the first; NaN is largest
  }
});

}  // namespace
}  // namespace st::conformance
