#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// A division and a square root apart from products; the parameter itself is rounded once.
const Cases adagrad_cases(Op::adagrad, {.each = 4, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.1}, {"rate_decay", 0.5}}, Attrs{{"initial_accumulator_value", 0.5}}})
    add_optimizer_cases(s, Op::adagrad, attrs, shapes());
});

}  // namespace
}  // namespace st::conformance
