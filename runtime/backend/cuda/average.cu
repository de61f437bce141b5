#include "backend/cuda/average.cuh"

#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/float_mode.h"

namespace st::cuda {
namespace {

template <class P>
void launch_average(const KernelQueue& queue, const Call& call) {
  const FloatMode mode;  // for the rounding of the share
  const Operand& average = call.writes[0];
  launch(queue.stream, {blocks_for(average.elements(), 16 / sizeof(P)), kBlock}, average_elements<P>, queue.faults,
         static_cast<P>(1 - call.attrs->real("decay")), as<const uint8_t>(call.in[1]), as<const double>(call.in[2]),
         as<const P>(call.in[0]), as<P>(average), average.elements());
}

}  // namespace

void enqueue_average(const KernelQueue& queue, Op /*op*/, const Call& call) {
  const DType type = call.writes[0].dtype;
  if (type == DType::f32) return launch_average<float>(queue, call);
  if (type == DType::f64) return launch_average<double>(queue, call);
  fail(Code::unsupported, text("average: device cuda has no average of ", type, "; keep f32 master weights"));
}

}  // namespace st::cuda
