#include "conformance.h"

namespace st::conformance {
namespace {

// A choice: the same bits everywhere.
const Cases where_cases(Op::where, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.flags(shape), s.normal(shape), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) {
    s.add({s.flags(a), s.normal(b), s.normal({})});
    s.add({s.flags(b), s.normal(a), s.normal(b)});
  }
  s.add({s.flags({3, 37}), s.integers({37}, 9), s.integers({3, 1}, 9)}).parameters.clear();
  s.add_special({s.flags({14}), special_values(), s.normal({14})});  // the one not chosen does not shine through
});

}  // namespace
}  // namespace st::conformance
