#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// The moment is a difference where the gradient opposes it. Where the direction is near 0 a rounding may turn its sign: with random
// operands none is.
const Cases lion_cases(Op::lion, {.each = 8, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.1}}, Attrs{{"beta1", 0.5}, {"beta2", 0.75}}})
    add_optimizer_cases(s, Op::lion, attrs, shapes());
});

}  // namespace
}  // namespace st::conformance
