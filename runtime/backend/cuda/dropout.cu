#include "backend/cuda/dropout.cuh"

#include <algorithm>

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/dropout_mask.h"
#include "backend/kernel_side.h"
#include "base/float_mode.h"

namespace st::cuda {
namespace {

template <class T>
void launch_dropout(StreamHandle stream, const Call& call) {
  const FloatMode mode;  // for the rounding of the factor
  const Attrs& attrs = *call.attrs;
  const Operand &x = call.in[0], &y = call.out[0];
  const double rate = attrs.real("rate");
  const int64_t given = attrs.integer("sample_elements");  // 0: slices of dimension 0 are samples
  DropoutRule<Compute<T>> rule;
  rule.site_key = mix(static_cast<uint64_t>(attrs.integer("seed")), static_cast<uint64_t>(attrs.integer("site")));
  rule.threshold = DropoutMask::threshold_of(rate);
  rule.factor = static_cast<Compute<T>>(1 / (1 - rate));
  rule.first = attrs.integer("first");
  rule.per_sample = given > 0 ? given : std::max<int64_t>(1, x.shape.elements(std::min(1, x.shape.rank()), x.shape.rank()));
  constexpr int64_t kEach = std::max<int64_t>(4, 16 / sizeof(T));
  launch(stream, {blocks_for(y.elements(), kEach), kBlock}, drop_elements<T>, rule, as<const int64_t>(call.in[1]), as<const T>(x), as<T>(y),
         y.elements());
}

}  // namespace

void enqueue_dropout(const KernelQueue& queue, Op op, const Call& call) {
  with_floating(op, call.out[0].dtype, [&](auto t) { launch_dropout<decltype(t)>(queue.stream, call); });
}

}  // namespace st::cuda
