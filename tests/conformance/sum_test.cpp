#include "conformance.h"

namespace st::conformance {
namespace {

// Sums of random terms in any order, 5003 at most: some units of the largest element or of its terms.
const Cases sum_cases(Op::sum, {.each = 8, .largest = 8}, [](Suite& s) {
  for (const bool keep : {false, true}) {
    const auto attrs = [&](const Ints& axes) { return Attrs{{"axes", axes}, {"keep_dims", keep}}; };
    s.add({s.normal({})}, attrs({}));
    s.add({s.normal({37})}, attrs({}));
    s.add({s.normal({3, 37})}, attrs({}));
    s.add({s.normal({3, 37})}, attrs({-1}));
    s.add({s.normal({37, 3})}, attrs({0}));
    s.add({s.normal({2, 5, 3})}, attrs({1}));
    s.add({s.normal({2, 3, 4})}, attrs({0, 2}));
    s.add({s.normal({2, 3, 4, 5})}, attrs({1, 3}));
    s.add({s.normal({0, 3})}, attrs({1}));
    s.add({s.normal({7, 5003}, 1, 0.5)}, attrs({1}));
    s.add({s.normal({5003, 7}, 1, 0.5)}, attrs({0}));
    s.add({s.normal({7, 5003}, 1, 0.5)}, attrs({}));
    s.add({s.normal({3, 0})}, attrs({1}));
    s.add({s.normal({0})}, attrs({}));
  }
  s.add_special({special_values()});
});

}  // namespace
}  // namespace st::conformance
