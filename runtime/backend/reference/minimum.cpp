#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_minimum{[](const Call& call) {
  any_map2(call, [](auto a, auto b) { return is_nan(a) || a < b ? a : b; });  // a NaN in b wins too: a < NaN is false
}};

}  // namespace st::reference
