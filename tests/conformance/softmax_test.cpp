#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

struct Along {
  Shape shape;
  int64_t axis;
};
const Along kSoftmaxed[] = {{{37}, -1},    {{3, 37}, -1}, {{3, 37}, 0}, {{2, 3, 5}, 1},  {{3, 1}, -1},
                            {{1, 129}, 1}, {{0, 37}, 1},  {{37, 0}, 0}, {{70, 517}, -1}, {{517, 70}, 0}};

void softmaxes(Suite& s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const auto& [shape, axis] : kSoftmaxed) {
    s.add({s.normal(shape)}, {{"axis", axis}});
    s.add({s.normal(shape, 10, 80)}, {{"axis", axis}});
  }
  s.add_special({Tensor::of({2, 3}, {1, -inf, 2, -inf, 5, -inf})});  // masked
  for (const Shape& shape : large_rows())
    for (const int64_t axis : {0, 1}) s.add_large({s.uniform(shape, -4, 4)}, {{"axis", axis}});
}

/// y from low to high, and its gradient.
std::function<void(Suite&)> softmax_backward(double low, double high) {
  return [=](Suite& s) {
    for (const auto& [shape, axis] : kSoftmaxed) s.add({s.uniform(shape, low, high), s.normal(shape)}, {{"axis", axis}});
    for (const Shape& shape : large_rows())
      for (const int64_t axis : {0, 1}) s.add_large({s.uniform(shape, -1, 1), s.uniform(shape, -1, 1)}, {{"axis", axis}});
  };
}

// One exponential over a sum of positive terms; an argument of -50 magnifies its own rounding.
const Cases softmax_cases(Op::softmax, {.each = 16, .largest = 1}, softmaxes);
// x - log sum cancels where one element has all the weight: relative to the largest.
const Cases log_softmax_cases(Op::log_softmax, {.each = 4, .largest = 4}, softmaxes);
// dy - sum(y dy), and dy - e^y sum(dy), cancel: relative to the largest.
const Cases softmax_backward_cases(Op::softmax_backward, {.each = 4, .largest = 8}, softmax_backward(0, 0.1));
const Cases log_softmax_backward_cases(Op::log_softmax_backward, {.each = 4, .largest = 8}, softmax_backward(-6, 0));

}  // namespace
}  // namespace st::conformance
