// Lion (Chen et al. 2023, algorithm 2). With g = gradient * factor:
//   p = (1 - lr decay) p - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
void lion_of(const Call& call) {
  using B = Batch<P>;
  const Attrs& attrs = *call.attrs;
  const UpdateInputs<P> inputs(call);
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  // For the smallest gradients the direction would fall below the normal range and lose its sign, so it is scaled up.
  constexpr P kLift = P(0x1p32);
  const B keep1(static_cast<P>(beta1) * kLift), take1(static_cast<P>(1 - beta1) * kLift);
  const B keep2(static_cast<P>(beta2)), take2(static_cast<P>(1 - beta2));
  const B shrink(static_cast<P>(attrs.real("weight_decay"))), step(static_cast<P>(inputs.rate));
  update_elements<P, 1>(call, inputs, [=](const B& g, const B& p, std::array<B, 1>& state) {
    const B direction = xsimd::sign(fma(keep1, state[0], take1 * g));
    state[0] = fma(keep2, state[0], take2 * g);
    return decayed(p, shrink, step, direction);
  });
}

void run_lion(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("lion", call, [&](auto p) { lion_of<decltype(p)>(call); });
}

}  // namespace

const Kernel kernel_lion = {run_lion};

}  // namespace st::cpu::ST_ISA
