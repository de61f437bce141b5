// torch.optim.Adagrad. With g = gradient * factor + decay p and r = lr / (1 + (t - 1) rate_decay):
//   s += g^2, from initial_accumulator_value on;  p -= r g / (sqrt(s) + epsilon)
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
void adagrad_of(const Call& call) {
  using B = Batch<P>;
  const Attrs& attrs = *call.attrs;
  const UpdateInputs<P> inputs(call);
  const B penalty(static_cast<P>(attrs.real("weight_decay"))), epsilon(epsilon_of<P>(call));
  const B step(static_cast<P>(inputs.rate / (1 + (inputs.number - 1) * attrs.real("rate_decay"))));
  const B initial(static_cast<P>(inputs.number == 1 ? attrs.real("initial_accumulator_value") : 0));
  const B most(kMostGradient<P>), largest(std::numeric_limits<P>::max());
  update_elements<P, 1>(call, inputs, [=](const B& gradient, const B& p, std::array<B, 1>& state) {
    const B g = held(fma(penalty, p, gradient), most);
    state[0] = xsimd::min(largest, fma(g, g, state[0] + initial));
    return fma(-step, g / (xsimd::sqrt(state[0]) + epsilon), p);
  });
}

void run_adagrad(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("adagrad", call, [&](auto p) { adagrad_of<decltype(p)>(call); });
}

}  // namespace

const Kernel kernel_adagrad = {run_adagrad};

}  // namespace st::cpu::ST_ISA
