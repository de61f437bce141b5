#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements and adds zeros: the same bits everywhere.
const Cases pad_cases(Op::pad, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, int64_t axis, int64_t before, int64_t after) {
    s.add({s.normal(x)}, {{"axis", axis}, {"before", before}, {"after", after}});
  };
  add({37}, 0, 3, 5);
  add({37}, 0, 0, 0);
  add({0}, 0, 1, 2);
  add({7, 5}, 0, 2, 0);
  add({3, 4, 9}, 2, 0, 4);
  add({3, 4, 9}, -2, 1, 1);
  add({0, 9}, 1, 1, 4);
  add({7, 5003}, 1, 1, 2);
});

}  // namespace
}  // namespace st::conformance
