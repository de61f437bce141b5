#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// Means of squares over rows and columns, in float lanes.
const Cases adafactor_cases(Op::adafactor, {.each = 16, .largest = 4}, [](Suite& s) {
  const Attrs other{{"beta2_decay", -0.5}, {"epsilon", 1e-6}, {"epsilon2", 1e-2}, {"clip_threshold", 1.5}, {"weight_decay", 0.1}};
  for (const Attrs& attrs : {Attrs{}, other}) add_optimizer_cases(s, Op::adafactor, attrs, shapes());
});

}  // namespace
}  // namespace st::conformance
