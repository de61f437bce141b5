#include "optimizer_cases.h"

namespace st::conformance {
namespace {

// Fifteen products in float after each other.
const Cases muon_cases(Op::muon, {.each = 64, .largest = 64}, [](Suite& s) {
  const std::vector<Shape> matrices = {{1, 1}, {3, 5}, {5, 3}, {33, 17}, {40, 129}, {0, 4}};
  const Attrs other{{"nesterov", false}, {"ns_steps", 2}, {"adjust_lr", std::string("match_rms_adamw")}, {"weight_decay", 0.0}};
  for (const Attrs& attrs : {Attrs{}, other}) add_optimizer_cases(s, Op::muon, attrs, matrices);
});

}  // namespace
}  // namespace st::conformance
