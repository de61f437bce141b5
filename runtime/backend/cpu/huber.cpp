// sum w (|d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)), d = x - t
#include "backend/cpu/paired_loss.h"

namespace st::cpu::ST_ISA {
namespace {

struct Huber {
  double delta;
  template <class B>
  B operator()(const B& x, const B& target) const {
    using C = typename B::value_type;
    const B d = x - target, size = xsimd::abs(d), edge(static_cast<C>(delta)), half(C(0.5));
    return xsimd::select(size <= edge, half * d * d, edge * (size - half * edge));
  }
};

struct HuberSlope {
  static constexpr double kFactor = 1;
  double delta;
  template <class B>
  B operator()(const B& x, const B& target) const {
    const B d = x - target, edge(static_cast<typename B::value_type>(delta));
    return xsimd::select(d > edge, edge, xsimd::select(d < -edge, -edge, d));
  }
};

}  // namespace

const Kernel kernel_huber = {[](const Call& call) { paired_loss("huber", call, Huber{call.attrs->real("delta")}); }};
const Kernel kernel_huber_backward = {
    [](const Call& call) { paired_loss_backward("huber_backward", call, HuberSlope{call.attrs->real("delta")}); }};

}  // namespace st::cpu::ST_ISA
