// gelu and gelu_backward; activation_values.h has the formulas.
#include "backend/reference/activation_values.h"
#include "backend/reference/elementwise.h"

namespace st::reference {
namespace {

bool is_tanh(const Call& call) { return call.attrs->word("approximate") == "tanh"; }

}  // namespace

constinit const Kernel kernel_gelu{[](const Call& call) {
  if (is_tanh(call)) return map(call, gelu_tanh);
  map(call, gelu_erf);
}};

constinit const Kernel kernel_gelu_backward{[](const Call& call) {
  if (is_tanh(call)) return map2(call, [](double x, double dy) { return dy * slope_tanh(x); });
  map2(call, [](double x, double dy) { return dy * slope_erf(x); });
}};

}  // namespace st::reference
