#include "conformance.h"

namespace st::conformance {
namespace {

// rstd multiplies all of a row's elements: a few units of each.
const Cases rms_norm_cases(Op::rms_norm, {.each = 8}, [](Suite& s) {
  const Shape inputs[] = {{37}, {3, 37}, {2, 3, 16}, {129, 1}, {1, 129}, {0, 37}, {70, 513}, {2, 3, 4}};
  for (const Shape& x : inputs) {
    OpCase& c = s.add({s.normal(x, 2, 1), s.normal({x.last()})});
    if (x.last() == 1) c.parameters.clear();  // a step function around 0, too steep for differences
    s.add({s.normal(x, 2, 1), s.normal({x.last()})}, {{"epsilon", 0.1}});
  }
});

// dgamma sums over rows: some units of the largest element.
const Cases rms_norm_backward_cases(Op::rms_norm_backward, {.each = 4, .largest = 16}, [](Suite& s) {
  const auto reference = make_reference();
  const Shape inputs[] = {{37}, {3, 37}, {2, 3, 16}, {1, 129}, {0, 37}, {300, 129}};
  for (const Shape& x : inputs) {
    const OpCase forward{.op = Op::rms_norm, .name = "forward", .in = {s.normal(x, 2, 1), s.normal({x.last()})}};
    s.add({forward.in[0], forward.in[1], run(*reference, forward).out[1], s.normal(x)}).statistics = {2};
  }
});

}  // namespace
}  // namespace st::conformance
