// step_factor: gradients were seeded with `seed` per unit of loss, so the true ones are g / (seed count). In f64; the factor is rounded
// once:
//   norm_true = norm / (seed count);  factor = min(1, max_norm / (norm_true + 1e-6)) / (seed count)  (max_norm 0: no clip)
//   skip = not finite, or count is 0, or the factor is outside fp32's normal range: then factor and norm must not be used
#include <algorithm>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/update_limits.h"

namespace st::reference {

constinit const Kernel kernel_step_factor{[](const Call& call) {
  const double norm = get(call.in[0], 0), count = get(call.in[2], 0);
  const bool finite = get_integer(call.in[1], 0) != 0;
  const double max_norm = call.attrs->real("max_norm");
  const double scale = call.attrs->real("seed") * count;
  const double true_norm = norm / scale;
  const double clip = max_norm == 0 ? 1 : std::min(1.0, max_norm / (true_norm + 1e-6));
  set(call.out[0], 0, clip / scale);
  set(call.out[1], 0, true_norm);
  set_integer(call.out[2], 0, !finite || count == 0 || !is_normal_f32(clip / scale));
}};

}  // namespace st::reference
