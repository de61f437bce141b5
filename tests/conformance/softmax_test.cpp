#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

struct Along {
  Shape shape;
  int64_t axis;
};
const Along kAll[] = {{{37}, -1},    {{3, 37}, -1}, {{3, 37}, 0}, {{2, 3, 5}, 1},  {{3, 1}, -1},
                      {{1, 129}, 1}, {{0, 37}, 1},  {{37, 0}, 0}, {{70, 517}, -1}, {{517, 70}, 0}};

// One exponential over a sum of positive terms; an argument of -50 magnifies its own rounding.
const Cases softmax_cases(Op::softmax, {.each = 16, .largest = 1}, [](Suite& s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const auto& [shape, axis] : kAll) {
    s.add({s.normal(shape)}, {{"axis", axis}});
    s.add({s.normal(shape, 10, 80)}, {{"axis", axis}});
  }
  s.add_special({Tensor::of({2, 3}, {1, -inf, 2, -inf, 5, -inf})});  // masked
});

// dy - sum(y dy) cancels: relative to the largest.
const Cases softmax_backward_cases(Op::softmax_backward, {.each = 4, .largest = 8}, [](Suite& s) {
  for (const auto& [shape, axis] : kAll) s.add({s.uniform(shape, 0, 0.1), s.normal(shape)}, {{"axis", axis}});
});

}  // namespace
}  // namespace st::conformance
