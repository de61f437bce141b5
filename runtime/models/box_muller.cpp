// The coefficients are those of fdlibm 5.3 (e_log.c, k_sin.c, k_cos.c; (c) 1993 Sun Microsystems, see THIRD_PARTY.md). Its branches are
// replaced by masks so that the compiler can vectorise each loop over a block; results are bitwise equal for every vector width.
#include "models/box_muller.h"

#include <bit>
#include <cmath>

namespace st {
namespace {

/// The value of 32 random bits, exact; uses the signed conversion because SSE2 has no unsigned one.
double value_of(uint32_t bits) { return static_cast<double>(static_cast<int32_t>(bits ^ 0x80000000U)) + 0x1p31; }

/// The upper 53 of 64 bits as a fraction of 1; exact.
double fraction_of(uint32_t low, uint32_t high) { return value_of(high) * 0x1p-32 + static_cast<double>(low >> 11) * 0x1p-53; }

/// x in (0, 1]. x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)) with s = f / (2 + f).
double log_of(double x) {
  constexpr uint64_t kRootHalf = 0x3FE6A09E00000000, kOne = 0x3FF0000000000000, kMantissa = 0x000FFFFFFFFFFFFF;
  const uint64_t shifted = std::bit_cast<uint64_t>(x) + (kOne - kRootHalf);
  const double f = std::bit_cast<double>((shifted & kMantissa) + kRootHalf) - 1;
  // Puts an integer below 2^52 into the mantissa of 2^52, then subtracts 2^52 and the exponent's bias.
  const double k = std::bit_cast<double>((shifted >> 52) | 0x4330000000000000) - (0x1p52 + 1023);

  const double s = f / (2 + f), z = s * s, w = z * z, half_square = 0.5 * f * f;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd =
      z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  constexpr double kLog2High = 6.93147180369123816490e-01, kLog2Low = 1.90821492927058770002e-10;  // kLog2High * k is exact
  return k * kLog2High - ((half_square - (s * (half_square + (odd + even)) + k * kLog2Low)) - f);
}

/// |x| <= pi / 4
double sin_of(double x) {
  const double z = x * x;
  const double rest = 8.33333333332248946124e-03 +
                      z * (-1.98412698298579493134e-04 +
                           z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  return x + z * x * (-1.66666666666666324348e-01 + z * rest);
}

/// |x| <= pi / 4
double cos_of(double x) {
  const double z = x * x;
  const double rest = 4.16666666666666019037e-02 +
                      z * (-1.38888888888741095749e-03 +
                           z * (2.48015872894767294178e-05 +
                                z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
  return 1 - (0.5 * z - z * z * rest);
}

struct Direction {
  double cos, sin;
};

/// Cosine and sine of `turns` in [0, 1). The nearest quarter turn is subtracted exactly, so both are accurate near their zeros too.
Direction direction_of(double turns) {
  constexpr double kPi = 3.14159265358979323846;
  const double quarters = 4 * turns;
  const double rounded = quarters + 0x1.8p52;  // no bits are left for the fraction: the lowest bits hold the nearest integer
  const double x = (quarters - (rounded - 0x1.8p52)) * (kPi / 2);
  const auto quadrant = std::bit_cast<uint64_t>(rounded);
  const auto sin = std::bit_cast<uint64_t>(sin_of(x)), cos = std::bit_cast<uint64_t>(cos_of(x));
  const uint64_t swap = (sin ^ cos) & (0 - (quadrant & 1));  // a quarter turn maps (cos, sin) to (-sin, cos)
  return {std::bit_cast<double>(cos ^ swap ^ ((quadrant + 1) & 2) << 62), std::bit_cast<double>(sin ^ swap ^ (quadrant & 2) << 62)};
}

}  // namespace

PairBlock uniform_pairs(const Philox& philox, uint64_t counter) {
  PairBlock pairs;
  for (size_t i = 0; i < kPairs; ++i) {
    const uint64_t at = counter + i;
    const auto bits = philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0});
    pairs.first[i] = fraction_of(bits[0], bits[1]);
    pairs.second[i] = fraction_of(bits[2], bits[3]);
  }
  return pairs;
}

PairBlock box_muller(const PairBlock& uniforms) {
  PairBlock normals;
  for (size_t i = 0; i < kPairs; ++i) {
    const double radius = std::sqrt(-2 * log_of(1 - uniforms.first[i]));  // 1 - a is in (0, 1]: its logarithm is finite
    const Direction direction = direction_of(uniforms.second[i]);
    normals.first[i] = radius * direction.cos;
    normals.second[i] = radius * direction.sin;
  }
  return normals;
}

}  // namespace st
