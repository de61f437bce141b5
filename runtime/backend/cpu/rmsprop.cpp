// torch.optim.RMSprop; its alpha is beta2 here. With g = gradient * factor + decay p:
//   v = beta2 v + (1 - beta2) g^2;  centered: a = beta2 a + (1 - beta2) g;  d = sqrt(v - a^2) + epsilon, a = 0 if not centered
//   momentum: b = momentum b + g / d, p -= lr b;  without: p -= lr g / d
// State: v, then b (if there is momentum), then a (if centered).
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P, bool kMomentum, bool kCentered>
void rmsprop_of(const Call& call) {
  using B = Batch<P>;
  constexpr size_t kStates = 1 + (kMomentum ? 1 : 0) + (kCentered ? 1 : 0);
  const Attrs& attrs = *call.attrs;
  const UpdateInputs<P> inputs(call);
  const double beta2 = attrs.real("beta2");
  const B keep(static_cast<P>(beta2)), take(static_cast<P>(1 - beta2)), epsilon(epsilon_of<P>(call));
  const B penalty(static_cast<P>(attrs.real("weight_decay"))), step(static_cast<P>(inputs.rate));
  const B momentum(static_cast<P>(attrs.real("momentum"))), most(kMostGradient<P>);
  update_elements<P, kStates>(call, inputs, [=](const B& gradient, const B& p, std::array<B, kStates>& state) {
    const B g = held(fma(penalty, p, gradient), most);
    state[0] = fma(keep, state[0], take * g * g);
    B variance = state[0];
    if constexpr (kCentered) {
      B& mean = state[kStates - 1];
      mean = fma(keep, mean, take * g);
      variance = xsimd::max(fma(-mean, mean, variance), B(0));  // rounding may make it negative
    }
    const B normal = g / (xsimd::sqrt(variance) + epsilon);
    if constexpr (!kMomentum) return fma(-step, normal, p);
    state[1] = fma(momentum, state[1], normal);
    return fma(-step, state[1], p);
  });
}

template <class P>
void choose_rmsprop(const Call& call) {
  const bool momentum = call.attrs->real("momentum") != 0, centered = call.attrs->flag("centered");
  if (momentum && centered) return rmsprop_of<P, true, true>(call);
  if (momentum) return rmsprop_of<P, true, false>(call);
  if (centered) return rmsprop_of<P, false, true>(call);
  rmsprop_of<P, false, false>(call);
}

void run_rmsprop(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("rmsprop", call, [&](auto p) { choose_rmsprop<decltype(p)>(call); });
}

}  // namespace

const Kernel kernel_rmsprop = {run_rmsprop};

}  // namespace st::cpu::ST_ISA
