// Gradients were seeded with `seed` per unit of loss: true = g / (seed count). factor = min(1, max_norm / (norm_true + 1e-6)) / (seed
// count) in double, rounded once; skip if a gradient is not finite, count is 0 or the factor is outside fp32's normal range.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/update_limits.h"

namespace st::cpu::ST_ISA {
namespace {

void run_step_factor(const Call& call) {
  const double norm = *as<const double>(call.in[0]), count = *as<const double>(call.in[2]);
  const bool finite = *as<const uint8_t>(call.in[1]) != 0;
  const double scale = call.attrs->real("seed") * count, max_norm = call.attrs->real("max_norm");
  const double true_norm = norm / scale;
  const double clip = max_norm == 0 ? 1 : std::min(1.0, max_norm / (true_norm + 1e-6));
  *as<float>(call.out[0]) = static_cast<float>(clip / scale);
  *as<double>(call.out[1]) = true_norm;
  *as<uint8_t>(call.out[2]) = finite && count != 0 && is_normal_f32(clip / scale) ? 0 : 1;
}

}  // namespace

const Kernel kernel_step_factor = {run_step_factor};

}  // namespace st::cpu::ST_ISA
