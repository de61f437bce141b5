// torch.optim.SGD. With g = gradient * factor + decay p:
//   b = momentum b + (1 - dampening) g, at the first update b = g;  p -= lr (nesterov ? g + momentum b : b), without momentum lr g
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
void sgd_of(const Call& call) {
  using B = Batch<P>;
  const Attrs& attrs = *call.attrs;
  constexpr P kLargest = std::numeric_limits<P>::max();
  const UpdateInputs<P> inputs(call, kLargest);
  const bool is_first = inputs.number == 1;
  const bool nesterov = attrs.flag("nesterov");
  const B penalty(static_cast<P>(attrs.real("weight_decay"))), step(static_cast<P>(inputs.rate));
  const B momentum(static_cast<P>(attrs.real("momentum"))), most(kLargest);
  const B keep(is_first ? B(0) : momentum), take(static_cast<P>(is_first ? 1 : 1 - attrs.real("dampening")));
  if (attrs.real("momentum") == 0)
    return update_elements<P, 0>(
        call, inputs, [=](const B& gradient, const B& p, std::array<B, 0>&) { return fma(-step, fma(penalty, p, gradient), p); });
  update_elements<P, 1>(call, inputs, [=](const B& gradient, const B& p, std::array<B, 1>& state) {
    const B g = fma(penalty, p, gradient);
    state[0] = held(fma(keep, state[0], take * g), most);
    return fma(-step, nesterov ? held(fma(momentum, state[0], g), most) : state[0], p);
  });
}

void run_sgd(const Call& call) {
  if (is_skipped(call)) return;
  with_parameter("sgd", call, [&](auto p) { sgd_of<decltype(p)>(call); });
}

}  // namespace

const Kernel kernel_sgd = {run_sgd};

}  // namespace st::cpu::ST_ISA
