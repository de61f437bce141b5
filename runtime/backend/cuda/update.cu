#include "backend/cuda/update.cuh"

#include <algorithm>

#include "backend/cuda/adamw_8bit.cuh"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/update_numbers.cuh"
#include "backend/cuda/update_types.h"
#include "backend/kernel_side.h"
#include "base/error.h"

namespace st::cuda {
namespace {

template <class Rule>
void launch_update(const KernelQueue& queue, const Rule& rule, const Call& call, const UpdateNumbers* numbers) {
  const Operand &parameter = call.writes[0], &gradient = call.in[0], &last = call.writes.back();
  StatePlaces<Rule> states{};
  for (int s = 0; s < Rule::kStates; ++s) states.at[s] = as<float>(call.writes[static_cast<size_t>(s) + 1]);
  const bool has_copy = is_half(last.dtype);
  launch(queue.stream, {blocks_for(parameter.elements(), kUpdateVector), kBlock}, update_elements<Rule>, rule, queue.faults, numbers,
         as<const float>(call.in[1]), as<const uint8_t>(call.in[2]), UpdateTypes{gradient.dtype, last.dtype}, as<const void>(gradient),
         as<float>(parameter), states, has_copy ? as<void>(last) : nullptr, parameter.elements());
}

void enqueue_rmsprop(const KernelQueue& queue, const Call& call, const UpdateNumbers* numbers) {
  const bool momentum = call.attrs->real("momentum") != 0, centered = call.attrs->flag("centered");
  if (momentum && centered) return launch_update(queue, Rmsprop<true, true>{}, call, numbers);
  if (momentum) return launch_update(queue, Rmsprop<true, false>{}, call, numbers);
  if (centered) return launch_update(queue, Rmsprop<false, true>{}, call, numbers);
  launch_update(queue, Rmsprop<false, false>{}, call, numbers);
}

void launch_adamw_8bit(const KernelQueue& queue, const Call& call, const UpdateNumbers* numbers) {
  const Operand &parameter = call.writes[0], &gradient = call.in[0], &last = call.writes.back();
  CodeValues values;
  std::ranges::copy(moment_codes::kSigned, values.of_signed);
  std::ranges::copy(moment_codes::kUnsigned, values.of_unsigned);
  launch(queue.stream, {blocks_for(parameter.elements(), 1), kBlock}, update_adamw_8bit, queue.faults, numbers, as<const float>(call.in[1]),
         as<const uint8_t>(call.in[2]), UpdateTypes{gradient.dtype, last.dtype}, as<const void>(gradient), as<float>(parameter),
         as<uint8_t>(call.writes[1]), as<float>(call.writes[2]), as<uint8_t>(call.writes[3]), as<float>(call.writes[4]),
         is_half(last.dtype) ? as<void>(last) : nullptr, parameter.elements(), values);
}

UpdateRule rule_of(Op op) {
  switch (op) {
    case Op::adamw:
    case Op::adamw_8bit:
      return UpdateRule::adamw;
    case Op::sgd:
      return UpdateRule::sgd;
    case Op::lion:
      return UpdateRule::lion;
    case Op::rmsprop:
      return UpdateRule::rmsprop;
    case Op::adagrad:
      return UpdateRule::adagrad;
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no elementwise optimizer"));
  }
}

UpdateAttrs attrs_of(Op op, const Attrs& attrs) {
  const auto real = [&](const char* name) { return attrs.has(name) ? attrs.real(name) : 0.0; };
  UpdateAttrs of;
  of.rule = rule_of(op);
  of.decoupled = op == Op::adamw_8bit || (attrs.has("decoupled") && attrs.flag("decoupled"));
  of.most = op == Op::sgd ? kLargest : kMostGradient<float>;
  if (const double clip = attrs.real("clip_value"); clip > 0) of.most = std::min(clip, of.most);
  if (attrs.has("epsilon")) of.epsilon = std::max(attrs.real("epsilon"), static_cast<double>(kLeastEpsilon<float>));
  of.lr_scale = attrs.real("lr_scale");
  of.weight_decay = attrs.real("weight_decay");
  of.beta1 = real("beta1");
  of.beta2 = real("beta2");
  of.momentum = real("momentum");
  of.dampening = real("dampening");
  of.rate_decay = real("rate_decay");
  of.initial = real("initial_accumulator_value");
  return of;
}

}  // namespace

void enqueue_update(const KernelQueue& queue, Op op, const Call& call) {
  check_update_types(op, call.writes[0].dtype, call.in[0].dtype);
  auto* const numbers = pointer_to<UpdateNumbers>(call.workspace);
  launch(queue.stream, {1, 1}, set_update_numbers, attrs_of(op, *call.attrs), as<const double>(call.in[3]), numbers);
  switch (op) {
    case Op::adamw:
      return launch_update(queue, Adamw{}, call, numbers);
    case Op::adamw_8bit:
      return launch_adamw_8bit(queue, call, numbers);
    case Op::sgd:
      if (call.attrs->real("momentum") == 0) return launch_update(queue, Sgd{}, call, numbers);
      return launch_update(queue, SgdWithMomentum{call.attrs->flag("nesterov")}, call, numbers);
    case Op::lion:
      return launch_update(queue, Lion{}, call, numbers);
    case Op::rmsprop:
      return enqueue_rmsprop(queue, call, numbers);
    case Op::adagrad:
      return launch_update(queue, Adagrad{}, call, numbers);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no elementwise optimizer"));
  }
}

}  // namespace st::cuda
