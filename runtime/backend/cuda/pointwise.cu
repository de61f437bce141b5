#include "backend/cuda/pointwise.cuh"

#include "backend/cuda/enqueue.h"
#include "backend/cuda/pointwise_launch.h"
#include "base/float_mode.h"

namespace st::cuda {
namespace {

/// Calls body(T{}) for an integer type.
template <class Body>
void with_integer(Op op, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::i32:
      return body(int32_t{});
    case DType::i64:
      return body(int64_t{});
    case DType::u8:
      return body(uint8_t{});
    default:
      fail_for(op, dtype);
  }
}

void enqueue_of_one(StreamHandle stream, Op op, const Call& call) {
  const Attrs& attrs = *call.attrs;
  const double p = op == Op::affine ? attrs.real("scale") : op == Op::clamp ? attrs.real("low") : 0;
  const double q = op == Op::affine ? attrs.real("shift") : op == Op::clamp ? attrs.real("high") : 0;
  const FloatMode mode;  // for the roundings to fp32
  with_floating(op, call.out[0].dtype, [&](auto t) {
    using T = decltype(t);
    using C = Compute<T>;
    launch_pointwise<T, T>(stream, OfOne<T>{op, static_cast<C>(p), static_cast<C>(q)}, call.out[0], call.in[0]);
  });
}

void enqueue_of_two(StreamHandle stream, Op op, const Operand& y, const Operand& a, const Operand& b) {
  const auto launch_of = [&](auto f, auto t) { launch_pointwise<decltype(t), decltype(t), decltype(t)>(stream, f, y, a, b); };
  const bool has_integers =
      op == Op::add || op == Op::sub || op == Op::mul || op == Op::minimum || op == Op::maximum || op == Op::accumulate;
  if (has_integers && is_integer(y.dtype)) return with_integer(op, y.dtype, [&](auto t) { launch_of(OfIntegers<decltype(t)>{op}, t); });
  with_floating(op, y.dtype, [&](auto t) { launch_of(OfTwo<decltype(t), decltype(t)>{op}, t); });
}

void enqueue_accumulate(StreamHandle stream, const Call& call) {
  const Operand &slot = call.writes[0], &value = call.in[0];
  if (value.dtype == slot.dtype) return enqueue_of_two(stream, Op::accumulate, slot, slot, value);
  if (slot.dtype == DType::f32 && value.dtype == DType::bf16)
    return launch_pointwise<float, float, Bf16>(stream, OfTwo<float, Bf16>{Op::accumulate}, slot, slot, value);
  if (slot.dtype == DType::f32 && value.dtype == DType::f16)
    return launch_pointwise<float, float, F16>(stream, OfTwo<float, F16>{Op::accumulate}, slot, slot, value);
  fail(Code::unsupported, text("accumulate: device cuda cannot add ", value.dtype, " to a slot of ", slot.dtype, "; cast the value first"));
}

void enqueue_compare(StreamHandle stream, const Call& call) {
  const std::string& test = call.attrs->word("test");
  const unsigned accepted = test == "equal"           ? 2
                            : test == "not_equal"     ? 1 | 4 | 8
                            : test == "less"          ? 1
                            : test == "less_equal"    ? 1 | 2
                            : test == "greater"       ? 4
                            : test == "greater_equal" ? 4 | 2
                                                      : 0;
  require(accepted != 0, Code::invalid_argument, "compare: unknown test ", test,
          "; use equal, not_equal, less, less_equal, greater or greater_equal");
  const auto launch_of = [&](auto t) {
    launch_pointwise<uint8_t, decltype(t), decltype(t)>(stream, Comparison{accepted}, call.out[0], call.in[0], call.in[1]);
  };
  const DType dtype = call.in[0].dtype;
  if (is_floating(dtype)) return with_floating(Op::compare, dtype, launch_of);
  if (dtype == DType::boolean) return launch_of(uint8_t{});
  with_integer(Op::compare, dtype, launch_of);
}

void enqueue_where(StreamHandle stream, const Call& call) {
  const auto launch_of = [&](auto t) {
    using Bits = decltype(t);
    launch_pointwise<Bits, uint8_t, Bits, Bits>(stream, Choice{}, call.out[0], call.in[0], call.in[1], call.in[2]);
  };
  switch (bytes_of(call.out[0].dtype)) {
    case 1:
      return launch_of(uint8_t{});
    case 2:
      return launch_of(uint16_t{});
    case 4:
      return launch_of(uint32_t{});
    default:
      return launch_of(uint64_t{});
  }
}

}  // namespace

void enqueue_pointwise(const KernelQueue& queue, Op op, const Call& call) {
  const StreamHandle stream = queue.stream;
  switch (op) {
    case Op::affine:
    case Op::sqrt:
    case Op::abs:
    case Op::neg:
    case Op::sign:
    case Op::clamp:
    case Op::relu:
      return enqueue_of_one(stream, op, call);
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::minimum:
    case Op::maximum:
    case Op::relu_backward:
    case Op::tanh_backward:
    case Op::sigmoid_backward:
      return enqueue_of_two(stream, op, call.out[0], call.in[0], call.in[1]);
    case Op::accumulate:
      return enqueue_accumulate(stream, call);
    case Op::compare:
      return enqueue_compare(stream, call);
    case Op::where:
      return enqueue_where(stream, call);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is not computed element by element"));
  }
}

}  // namespace st::cuda
