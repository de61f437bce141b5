// average: an exponential moving average, a = a + (1 - decay) (w - a), like torch's lerp; at the first update a = w
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_average{[](const Call& call) {
  if (get_integer(call.in[1], 0) != 0) return;
  const Operand &value = call.in[0], &average = call.writes[0];
  const double take = get(call.in[2], 1) == 1 ? 1 : 1 - call.attrs->real("decay");
  for (int64_t i = 0; i < average.elements(); ++i) {
    const double w = get(value, i), a = get(average, i);
    set(average, i, take == 1 ? w : a + take * (w - a));
  }
}};

}  // namespace st::reference
