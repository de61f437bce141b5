#include "backend/cuda/update.cuh"

#include <algorithm>
#include <cmath>

#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/float_mode.h"

namespace st::cuda {
namespace {

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

template <class Rule>
void launch_update(StreamHandle stream, const Rule& rule, const Call& call, const UpdateNumbers* numbers) {
  const Operand &parameter = call.writes[0], &gradient = call.in[0], &last = call.writes.back();
  StatePlaces<Rule> states{};
  for (int s = 0; s < Rule::kStates; ++s) states.at[s] = as<float>(call.writes[static_cast<size_t>(s) + 1]);
  const bool has_copy = is_half(last.dtype);
  launch(stream, {blocks_for(parameter.elements(), kUpdateVector), kBlock}, update_elements<Rule>, rule, numbers,
         as<const float>(call.in[1]), as<const uint8_t>(call.in[2]), UpdateTypes{gradient.dtype, last.dtype}, as<const void>(gradient),
         as<float>(parameter), states, has_copy ? as<void>(last) : nullptr, parameter.elements());
}

void enqueue_rmsprop(StreamHandle stream, const Call& call, const UpdateNumbers* numbers) {
  const bool momentum = call.attrs->real("momentum") != 0, centered = call.attrs->flag("centered");
  if (momentum && centered) return launch_update(stream, Rmsprop<true, true>{}, call, numbers);
  if (momentum) return launch_update(stream, Rmsprop<true, false>{}, call, numbers);
  if (centered) return launch_update(stream, Rmsprop<false, true>{}, call, numbers);
  launch_update(stream, Rmsprop<false, false>{}, call, numbers);
}

float rounded(double x) { return static_cast<float>(x); }

void set_adamw(UpdateNumbers& n, const Attrs& attrs, double rate, double number) {
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2"), decay = attrs.real("weight_decay");
  const bool decoupled = attrs.flag("decoupled");
  const double unbias1 = 1 / (1 - std::pow(beta1, number));
  n.step = rounded(rate * unbias1);
  n.penalty = rounded(decoupled ? 0 : decay);
  n.shrink = rounded(decoupled ? decay / unbias1 : 0);
  n.keep1 = rounded(beta1);
  n.take1 = rounded(1 - beta1);
  n.keep2 = rounded(beta2);
  n.take2 = rounded(1 - beta2);
  n.unbias2 = rounded(1 / std::sqrt(1 - std::pow(beta2, number)));
}

void set_sgd(UpdateNumbers& n, const Attrs& attrs, double rate, double number) {
  const bool is_first = number == 1;
  n.step = rounded(rate);
  n.penalty = rounded(attrs.real("weight_decay"));
  n.momentum = rounded(attrs.real("momentum"));
  n.keep1 = is_first ? 0 : n.momentum;
  n.take1 = rounded(is_first ? 1 : 1 - attrs.real("dampening"));
}

void set_lion(UpdateNumbers& n, const Attrs& attrs, double rate) {
  constexpr float kLift = 0x1p32F;  // else the smallest directions would fall below the normal range and lose their sign
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  n.step = rounded(rate);
  n.shrink = rounded(attrs.real("weight_decay"));
  n.keep1 = rounded(beta1) * kLift;
  n.take1 = rounded(1 - beta1) * kLift;
  n.keep2 = rounded(beta2);
  n.take2 = rounded(1 - beta2);
}

void set_rmsprop(UpdateNumbers& n, const Attrs& attrs, double rate) {
  const double beta2 = attrs.real("beta2");
  n.step = rounded(rate);
  n.penalty = rounded(attrs.real("weight_decay"));
  n.keep2 = rounded(beta2);
  n.take2 = rounded(1 - beta2);
  n.momentum = rounded(attrs.real("momentum"));
}

void set_adagrad(UpdateNumbers& n, const Attrs& attrs, double rate, double number) {
  n.step = rounded(rate / (1 + (number - 1) * attrs.real("rate_decay")));
  n.penalty = rounded(attrs.real("weight_decay"));
  n.initial = rounded(number == 1 ? attrs.real("initial_accumulator_value") : 0);
}

}  // namespace

UpdateNumbers update_numbers(Op op, const Attrs& attrs, double given_rate, double number) {
  const FloatMode mode;  // for the roundings to fp32
  const double rate = given_rate * attrs.real("lr_scale"), clip = attrs.real("clip_value");
  UpdateNumbers n;
  n.most = op == Op::sgd ? kLargest : kMostGradient<float>;
  if (clip > 0) n.most = rounded(std::min(clip, static_cast<double>(n.most)));
  if (attrs.has("epsilon")) n.epsilon = rounded(std::max(attrs.real("epsilon"), kLeastEpsilon<float>));
  switch (op) {
    case Op::adamw:
      set_adamw(n, attrs, rate, number);
      break;
    case Op::sgd:
      set_sgd(n, attrs, rate, number);
      break;
    case Op::lion:
      set_lion(n, attrs, rate);
      break;
    case Op::rmsprop:
      set_rmsprop(n, attrs, rate);
      break;
    case Op::adagrad:
      set_adagrad(n, attrs, rate, number);
      break;
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no elementwise optimizer"));
  }
  return n;
}

void enqueue_update(StreamHandle stream, Op op, const Call& call, const UpdateNumbers* numbers) {
  const DType parameter = call.writes[0].dtype, gradient = call.in[0].dtype;
  require(parameter == DType::f32 && (gradient == DType::f32 || is_half(gradient)), Code::unsupported, name_of(op),
          ": device cuda cannot update ", parameter, " parameters from ", gradient, " gradients; keep f32 master weights");
  switch (op) {
    case Op::adamw:
      return launch_update(stream, Adamw{}, call, numbers);
    case Op::sgd:
      if (call.attrs->real("momentum") == 0) return launch_update(stream, Sgd{}, call, numbers);
      return launch_update(stream, SgdWithMomentum{call.attrs->flag("nesterov")}, call, numbers);
    case Op::lion:
      return launch_update(stream, Lion{}, call, numbers);
    case Op::rmsprop:
      return enqueue_rmsprop(stream, call, numbers);
    case Op::adagrad:
      return launch_update(stream, Adagrad{}, call, numbers);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no elementwise optimizer"));
  }
}

}  // namespace st::cuda
