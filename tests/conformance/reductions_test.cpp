#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

/// Over all axes, one or some: of one element, of short and long rows, of no elements.
void reductions(Suite& s) {
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
  }
  s.add_special({special_values()});
  for (const Ints& axes : {Ints{}, Ints{0}, Ints{1}, Ints{2}, Ints{0, 1}, Ints{1, 2}, Ints{0, 2}})
    s.add_large({s.normal({37, 71, 53}, 1, 0.5)}, {{"axes", axes}});
}

void reductions_of_nothing_too(Suite& s) {
  reductions(s);
  for (const bool keep : {false, true}) {
    s.add({s.normal({3, 0})}, {{"axes", Ints{1}}, {"keep_dims", keep}});
    s.add({s.normal({0})}, {{"axes", Ints{}}, {"keep_dims", keep}});
  }
}

// Sums of up to 5003 random terms in any order: some units of the largest element or of its terms. A mean is one more division.
const Cases sum_cases(Op::sum, {.each = 8, .largest = 8}, reductions_of_nothing_too);
const Cases mean_cases(Op::mean, {.each = 8, .largest = 8}, reductions_of_nothing_too);

// A selection: the same bits everywhere.
const Cases max_cases(Op::max, {}, [](Suite& s) {
  reductions(s);
  s.add_special({Tensor::of({2, 4}, {1, 3, 3, 2, 0, 0, 0, 0})}, {{"axes", Ints{1}}});
});
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
  for (const Shape& shape : large_rows()) s.add_large({s.normal(shape)});
});

}  // namespace
}  // namespace st::conformance
