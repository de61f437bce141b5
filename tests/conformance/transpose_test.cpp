#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements: the same bits everywhere.
const Cases transpose_cases(Op::transpose, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, const Ints& order) { s.add({s.normal(x)}, {{"order", order}}); };
  add({}, {});
  add({37}, {0});
  add({3, 37}, {1, 0});
  add({129, 37}, {1, 0});
  add({3, 0}, {1, 0});
  add({2, 3, 5}, {0, 2, 1});
  add({2, 3, 5}, {2, 0, 1});
  add({2, 3, 5}, {0, 1, 2});
  add({2, 7, 3, 8}, {0, 2, 1, 3});
  add({2, 3, 4, 5}, {3, 1, 0, 2});
  add({500, 100}, {1, 0});
  s.add_special({s.integers({3, 37}, 100)}, {{"order", Ints{1, 0}}});
});

}  // namespace
}  // namespace st::conformance
