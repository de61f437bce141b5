#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements: the same bits everywhere.
const Cases slice_cases(Op::slice, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, int64_t axis, int64_t start, int64_t end) {
    s.add({s.normal(x)}, {{"axis", axis}, {"start", start}, {"end", end}});
  };
  add({37}, 0, 3, 5);
  add({37}, 0, 0, 37);
  add({37}, 0, 5, 5);
  add({7, 5}, 0, 2, 6);
  add({3, 4, 9}, 2, 1, 4);
  add({3, 4, 9}, -2, 1, 4);
  add({0, 9}, 1, 1, 4);
  add({7, 5003}, 1, 1, 5000);
});

}  // namespace
}  // namespace st::conformance
