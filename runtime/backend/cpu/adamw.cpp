// 28 bytes per parameter in fp32. With g = gradient * factor, torch.optim.AdamW's:
//   p *= 1 - lr decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// and torch.optim.Adam's: g += decay p replaces the decay of p.
#include "backend/cpu/optimizer_pass.h"
#include "base/whole_power.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
void adamw_of(const Call& call) {
  using B = Batch<P>;
  const Attrs& attrs = *call.attrs;
  const UpdateInputs<P> inputs(call);
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2"), decay = attrs.real("weight_decay");
  const bool decoupled = attrs.flag("decoupled");
  const B epsilon(epsilon_of<P>(call)), most(kMostGradient<P>);
  const B keep1(static_cast<P>(beta1)), take1(static_cast<P>(1 - beta1)), keep2(static_cast<P>(beta2)), take2(static_cast<P>(1 - beta2));
  const B penalty(static_cast<P>(decoupled ? 0 : decay));
  const double unbias1 = 1 / (1 - whole_power(beta1, static_cast<uint64_t>(inputs.number)));
  const B step(static_cast<P>(inputs.rate * unbias1)), shrink(static_cast<P>(decoupled ? decay / unbias1 : 0));
  const B unbias2(static_cast<P>(1 / std::sqrt(1 - whole_power(beta2, static_cast<uint64_t>(inputs.number)))));
  update_elements<P, 2>(call, inputs, [=](const B& gradient, const B& p, std::array<B, 2>& state) {
    auto& [m, v] = state;
    const B g = held(fma(penalty, p, gradient), most);
    m = fma(keep1, m, take1 * g);
    v = fma(keep2, v, take2 * g * g);
    const B denominator = fma(xsimd::sqrt(v), unbias2, epsilon);
    return decayed(p, shrink, step, m / denominator);
  });
}

void run_adamw(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("adamw", call, [&](auto p) { adamw_of<decltype(p)>(call); });
}

}  // namespace

const Kernel kernel_adamw = {run_adamw};

}  // namespace st::cpu::ST_ISA
