// c = a ^ b. Floats use e^(b ln a) in double, since the exponent magnifies the rounding of ln a. Doubles have no wider type and use libm,
// and so do zeros, negative bases and non-finite numbers: C's pow has a rule for each. Lane by lane, so that neighbours change no bit.
#include <cmath>

#include "backend/cpu/pointwise.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

bool is_regular(float a, float b) { return a > 0 && std::isfinite(a) && std::isfinite(b); }

/// Flushes subnormals to zero: libm inspects bits and would not treat them as zero.
template <class T>
T counted(T x) {
  return std::abs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}

struct Pow {
  F64 operator()(const F64& a, const F64& b) const {
    alignas(64) double base[F64::size], exponent[F64::size];
    a.store_aligned(base);
    b.store_aligned(exponent);
    for (size_t i = 0; i < F64::size; ++i) base[i] = std::pow(counted(base[i]), counted(exponent[i]));
    return F64::load_aligned(base);
  }
  F32 operator()(const F32& a, const F32& b) const {
    alignas(64) float base[F32::size], exponent[F32::size], result[F32::size];
    alignas(64) double wide[F64::size], power[F64::size];
    a.store_aligned(base);
    b.store_aligned(exponent);
    for (size_t half = 0; half < F32::size; half += F64::size) {
      for (size_t i = 0; i < F64::size; ++i) {
        wide[i] = static_cast<double>(base[half + i]);
        power[i] = static_cast<double>(exponent[half + i]);
      }
      exp_of(F64::load_aligned(power) * xsimd::log(F64::load_aligned(wide))).store_aligned(wide);
      for (size_t i = 0; i < F64::size; ++i) result[half + i] = static_cast<float>(wide[i]);
    }
    for (size_t i = 0; i < F32::size; ++i) {
      if (!is_regular(base[i], exponent[i])) result[i] = std::pow(counted(base[i]), counted(exponent[i]));
    }
    return F32::load_aligned(result);
  }
};

}  // namespace

const Kernel kernel_pow = {[](const Call& call) { pointwise<2>("pow", call, Pow{}); }};

}  // namespace st::cpu::ST_ISA
