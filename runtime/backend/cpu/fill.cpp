// y = value in every element
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

void run_fill(const Call& call) {
  const double value = call.attrs->real("value");
  with_type(call.out[0].dtype, [&](auto t) {
    using T = decltype(t);
    T* const y = as<T>(call.out[0]);
    T constant;
    if constexpr (kIsHalf<T>) {
      constant = narrow<T>(odd_float_of(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      constant = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      constant = truncate_to<T>(value);
    } else {
      constant = static_cast<T>(value);
    }
    call.workers->run_range(call.out[0].elements(), kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, constant); });
  });
}

}  // namespace

const Kernel kernel_fill = {run_fill};

}  // namespace st::cpu::ST_ISA
