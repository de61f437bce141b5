#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

// One addition per element, rounded once to the slot's dtype: for f32 the bits of an f32 addition.
constinit const Kernel kernel_accumulate{[](const Call& call) {
  const Operand &value = call.in[0], &slot = call.writes[0];
  const int64_t n = slot.elements();
  for (int64_t i = 0; i < n; ++i) set(slot, i, get(slot, i) + get(value, i));
}};

}  // namespace st::reference
