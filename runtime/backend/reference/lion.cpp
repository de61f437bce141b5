// lion: Lion (Chen et al. 2023, algorithm 2) on g = gradient * factor:
//   p = (1 - lr weight_decay) p - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {

constinit const Kernel kernel_lion{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand &parameter = call.writes[0], &moment = call.writes[1];
  const double beta1 = call.attrs->real("beta1"), beta2 = call.attrs->real("beta2");
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    const double g = in.true_gradient(i), m = get(moment, i);
    const double along = beta1 * m + (1 - beta1) * g;
    const double direction = along > 0 ? 1 : along < 0 ? -1 : 0;
    set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - in.rate * direction);
    set(moment, i, beta2 * m + (1 - beta2) * g);
  }
  write_copy(call);
}};

}  // namespace st::reference
