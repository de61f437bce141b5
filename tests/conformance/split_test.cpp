#include "conformance.h"

namespace st::conformance {
namespace {

// Moves elements: the same bits everywhere.
const Cases split_cases(Op::split, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, int64_t axis, const Ints& sizes) {
    OpCase& c = s.add({s.normal(x)}, {{"axis", axis}, {"sizes", sizes}});
    c.seeded.clear();
    for (size_t i = 0; i < sizes.size(); ++i) c.seeded.push_back(static_cast<int32_t>(i));
  };
  add({37}, 0, {37});
  add({37}, 0, {1, 30, 6});
  add({3, 9}, -1, {4, 2, 3});
  add({7, 5}, 0, {1, 6});
  add({2, 6, 3}, 1, {0, 4, 2});
  add({0, 6}, 1, {3, 3});
  add({7, 5001}, 1, {1667, 1667, 1667});
  s.add({s.normal({3, 9})}, {{"axis", int64_t{1}}, {"sizes", Ints{4, 5}}}).seeded = {1};  // the loss sees one piece only
});

}  // namespace
}  // namespace st::conformance
