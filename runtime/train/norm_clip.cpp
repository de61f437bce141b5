#include "train/norm_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/needs.h"
#include "base/error.h"
#include "parts/unscale.h"

namespace st {

NormClip::NormClip(const Context& context)
    : backend_(context.host_backend()), memory_(context.memory()), workers_(context.make_workers(context.threads())) {}

double NormClip::norm_of(std::span<const HostView> gradients) {
  std::vector<Memory> copies;
  operands_.clear();
  types_.clear();
  for (const HostView& gradient : gradients) {
    check(is_floating(gradient.dtype), "clip_norm: \"", gradient.name, "\" must be f32, f64, bf16 or f16, got ", gradient.dtype);
    const void* data = gradient.data;
    if (!gradient.is_plain()) data = compact_data(gradient, copies.emplace_back(), memory_);
    operands_.push_back({backend_.of_host(data), gradient.dtype, gradient.shape});  // read only
    types_.push_back({.dtype = gradient.dtype, .shape = gradient.shape, .layout = {}});
  }
  const Kernel& kernel = backend_.kernels()[static_cast<size_t>(Op::gradient_norm)];
  const Attrs attrs;
  const int64_t need = workspace_need(profile_of(backend_, workers_->threads()), Op::gradient_norm, types_, {}, attrs);
  if (need > 0 && (!workspace_ || workspace_->size() < need)) workspace_ = backend_.allocate(need, MemoryRole::workspace);
  double norm = 0;
  bool finite = true;
  const std::array<Operand, 2> out = {Operand{backend_.of_host(&norm), DType::f64, {}},
                                      Operand{backend_.of_host(&finite), DType::boolean, {}}};
  Call call{.in = operands_,
            .out = out,
            .reads = {},
            .writes = {},
            .attrs = &attrs,
            .workspace = {},
            .workspace_bytes = need,
            .workers = workers_.get()};
  if (need > 0) call.workspace = workspace_->data();
  kernel.run(call);
  return norm;
}

double NormClip::clip(std::span<const HostView> gradients, double max_norm) {
  check(max_norm >= 0, "clip_norm: max_norm must be at least 0, got ", max_norm, "; 0 only computes the norm");
  const double norm = norm_of(gradients);
  if (max_norm == 0 || !std::isfinite(norm)) return norm;
  double factor = std::min(1.0, max_norm / (norm + 1e-6));  // as step_factor
  const auto scale = [&](double by) {
    for (const HostView& gradient : gradients)
      unscale({.dtype = gradient.dtype, .shape = gradient.shape, .strides = gradient.strides, .data = gradient.data}, by, *workers_);
  };
  // A factor that fp32 does not hold, of large gradients, in steps.
  for (; factor > 0 && factor < std::numeric_limits<float>::min(); factor *= 0x1p64) scale(0x1p-64);
  if (const auto rounded = static_cast<float>(factor); rounded != 1) scale(rounded);
  return norm;
}

}  // namespace st
