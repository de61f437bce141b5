#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements: the same bits everywhere.
const Cases concat_cases(Op::concat, {}, [](Suite& s) {
  s.add({s.normal({37})});
  s.add({s.normal({3}), s.normal({0}), s.normal({37})}, {{"axis", int64_t{0}}});
  s.add({s.normal({3, 2}), s.normal({3, 5}), s.normal({3, 1})});
  s.add({s.normal({2, 3}), s.normal({1, 3})}, {{"axis", int64_t{0}}});
  s.add({s.normal({2, 3, 4}), s.normal({2, 1, 4})}, {{"axis", int64_t{1}}});
  s.add({s.normal({0, 3}), s.normal({0, 4})});
  s.add({s.normal({7, 1667}), s.normal({7, 1667}), s.normal({7, 1667})});
  s.add_special({s.integers({3, 2}, 9), s.integers({3, 5}, 9)});
});

}  // namespace
}  // namespace st::conformance
