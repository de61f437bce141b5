#include "backend/cuda/transcendental.cuh"

#include "backend/cuda/enqueue.h"
#include "backend/cuda/pointwise_launch.h"

namespace st::cuda {
namespace {

bool is_exact(Op op, const Call& call) {
  if (op != Op::gelu && op != Op::gelu_backward) return false;
  const std::string& word = call.attrs->word("approximate");
  check(word == "tanh" || word == "erf", name_of(op), ": approximate must be tanh or erf, got ", word);
  return word == "erf";
}

}  // namespace

void enqueue_transcendental(const KernelQueue& queue, Op op, const Call& call) {
  const StreamHandle stream = queue.stream;
  const Operand& y = call.out[0];
  const bool exact = is_exact(op, call);
  with_floating(op, y.dtype, [&](auto t) {
    using T = decltype(t);
    switch (op) {
      case Op::exp:
      case Op::log:
      case Op::gelu:
      case Op::silu:
      case Op::tanh:
      case Op::sigmoid:
        return launch_pointwise<T, T>(stream, Transcendental<T>{op, exact}, y, call.in[0]);
      case Op::gelu_backward:
      case Op::silu_backward:
        return launch_pointwise<T, T, T>(stream, TranscendentalSlope<T>{op, exact}, y, call.in[0], call.in[1]);
      case Op::pow:
        return launch_pointwise<T, T, T>(stream, Power<T>{}, y, call.in[0], call.in[1]);
      default:
        fail(Code::internal, text("cuda: ", name_of(op), " has no exponential"));
    }
  });
}

}  // namespace st::cuda
