#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// Centered, a difference of two like numbers stands under the root.
const Cases rmsprop_cases(Op::rmsprop, {.each = 8, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.1}, {"epsilon", 1e-4}}, Attrs{{"momentum", 0.9}},
                             Attrs{{"centered", true}, {"epsilon", 1e-2}}, Attrs{{"centered", true}, {"momentum", 0.5}, {"epsilon", 1e-2}}})
    add_optimizer_cases(s, Op::rmsprop, attrs, shapes());
});

}  // namespace
}  // namespace st::conformance
