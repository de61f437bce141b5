// y = x in another dtype: rounds to nearest even; float to integer truncates and clamps to the integer's range, NaN gives 0
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

template <class To, class From>
To cast_one(From x) {
  const auto value = widen(x);
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<To> || std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else {
    return truncate_to<To>(static_cast<double>(value));
  }
}

template <class To, class From>
void cast_of(const Call& call) {
  const From* const x = as<const From>(call.in[0]);
  To* const y = as<To>(call.out[0]);
  call.workers->run_range(call.out[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if constexpr (std::is_same_v<From, To>) {
      std::memmove(y + begin, x + begin, static_cast<size_t>(n) * sizeof(To));
    } else if constexpr ((kIsHalf<To> && std::is_same_v<From, float>) || (kIsHalf<From> && std::is_same_v<To, float>)) {
      int64_t i = begin;
      for (; i + kLanes<float> <= end; i += kLanes<float>) store(y + i, load(x + i));
      if (i < end) store_tail(y + i, load_tail(x + i, end - i), end - i);
    } else if constexpr (kIsHalf<To>) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (kIsHalf<From>) {
          y[i] = narrow<To>(widen(x[i]));
        } else {
          y[i] = narrow<To>(odd_float_of(static_cast<double>(x[i])));
        }
      }
    } else {
      for (int64_t i = begin; i < end; ++i) y[i] = cast_one<To>(x[i]);
    }
  });
}

void run_cast(const Call& call) {
  with_type(call.in[0].dtype,
            [&](auto from) { with_type(call.out[0].dtype, [&](auto to) { cast_of<decltype(to), decltype(from)>(call); }); });
}

}  // namespace

const Kernel kernel_cast = {run_cast};

}  // namespace st::cpu::ST_ISA
