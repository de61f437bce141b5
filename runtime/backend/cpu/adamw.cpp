// One pass over gradient, parameter and moments: 28 bytes a parameter in fp32. With g = gradient * factor, in torch.optim.AdamW's order:
//   p *= 1 - lr decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// Plain stores: the lines were just read, so non-temporal ones would only throw them out of the cache first.
#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kParametersAhead = 1024;  // elements: the hardware's own prefetcher ends with the page

template <class P, class G>
void adamw_of(const Call& call) {
  using B = Batch<P>;
  const Attrs& attrs = *call.attrs;
  const double rate = scalar_of(call.in[3], 0), update = scalar_of(call.in[3], 1);
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  const B factor(static_cast<P>(scalar_of(call.in[1]))), epsilon(static_cast<P>(attrs.real("epsilon")));
  const B keep1(static_cast<P>(beta1)), take1(static_cast<P>(1 - beta1)), keep2(static_cast<P>(beta2)), take2(static_cast<P>(1 - beta2));
  const B decay(static_cast<P>(1 - rate * attrs.real("weight_decay")));
  const B step(static_cast<P>(rate / (1 - std::pow(beta1, update))));
  const B unbias2(static_cast<P>(1 / std::sqrt(1 - std::pow(beta2, update))));
  const G* const gradient = call.in[0].as<const G>();
  P* const parameter = call.writes[0].as<P>();
  P* const moment1 = call.writes[1].as<P>();
  P* const moment2 = call.writes[2].as<P>();

  call.workers->run_range(call.writes[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    each_vector<P>(end - begin, [&](int64_t i, int64_t count) {
      const int64_t at = begin + i;
      __builtin_prefetch(gradient + at + kParametersAhead);
      __builtin_prefetch(moment1 + at + kParametersAhead, 1);
      __builtin_prefetch(moment2 + at + kParametersAhead, 1);
      __builtin_prefetch(parameter + at + kParametersAhead, 1);
      const B g = load_part(gradient + at, count) * factor;
      const B m = fma(keep1, load_part(moment1 + at, count), take1 * g);
      const B v = fma(keep2, load_part(moment2 + at, count), take2 * g * g);
      const B denominator = fma(xsimd::sqrt(v), unbias2, epsilon);
      const B p = fma(-step, m / denominator, load_part(parameter + at, count) * decay);
      store_part(moment1 + at, m, count);
      store_part(moment2 + at, v, count);
      store_part(parameter + at, p, count);
    });
  });
}

void run_adamw(const Call& call) {
  if (*call.in[2].as<const uint8_t>() != 0) return;  // a skipped step leaves every bit
  const DType parameter = call.writes[0].dtype, gradient = call.in[0].dtype;
  if (parameter == DType::f32 && gradient == DType::f32) return adamw_of<float, float>(call);
  if (parameter == DType::f32 && gradient == DType::bf16) return adamw_of<float, bf16>(call);
  if (parameter == DType::f32 && gradient == DType::f16) return adamw_of<float, f16>(call);
  if (parameter == DType::f64 && gradient == DType::f64) return adamw_of<double, double>(call);
  fail(Code::unsupported,
       text("adamw: the cpu backend has no update of ", parameter, " parameters from ", gradient, " gradients; keep f32 master weights"));
}

}  // namespace

const Kernel kernel_adamw = {run_adamw, nullptr};

}  // namespace st::cpu::ST_ISA
