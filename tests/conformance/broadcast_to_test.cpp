#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements: the same bits everywhere.
const Cases broadcast_to_cases(Op::broadcast_to, {}, [](Suite& s) {
  const auto add = [&](const Shape& from, const Ints& to) { s.add({s.normal(from)}, {{"shape", to}}); };
  add({}, {});
  add({}, {5});
  add({1}, {129});
  add({3, 1}, {2, 3, 7});
  add({1, 37}, {3, 37});
  add({37}, {3, 37});
  add({1, 1}, {3, 0});
  add({2, 1, 3, 1}, {2, 5, 3, 4});
  add({7, 1}, {7, 5003});
});

}  // namespace
}  // namespace st::conformance
