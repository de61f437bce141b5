#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// Sums of products of either sign; the parameter itself is rounded once.
const Cases sgd_cases(Op::sgd, {.each = 4, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.1}}, Attrs{{"momentum", 0.9}}, Attrs{{"momentum", 0.9}, {"nesterov", true}},
                             Attrs{{"momentum", 0.9}, {"dampening", 0.5}, {"weight_decay", 0.1}}})
    add_optimizer_cases(s, Op::sgd, attrs, shapes());
});

}  // namespace
}  // namespace st::conformance
