// Eight-bit codes of a moment's elements, relative to the largest of a block of 256: the dynamic tree map of Dettmers et al. 2022 (the
// codes of bitsandbytes' create_dynamic_map).
// - There are seven decades below 1; decade d of 0..6 is (10^(d-7), 10^(d-6)], cut into 2^d equal bins (unsigned: 2^(d+1)).
// - A code stands for the middle of its bin. There is one more code for 0 and one for 1.
// - Codes are in the order of their values. Unsigned: 0, the bins, 255 for 1. Signed: -127..-1 (127 bins), 0, the positive bins, all
//   shifted by 127.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace st::moment_codes {

constexpr int kDecades = 7;

/// The values of the bins in increasing order, with `first` bins in the lowest decade; index 0 is the value 0.
constexpr std::array<float, 256> magnitudes(int first) {
  std::array<float, 256> values{};
  std::size_t code = 1;
  double top = 1e-6;
  for (int d = 0; d < kDecades; ++d, top *= 10) {
    const int bins = first << d;
    for (int bin = 0; bin < bins; ++bin) values[code++] = static_cast<float>(top * (0.1 + 0.9 * (bin + 0.5) / bins));
  }
  values[code] = 1;
  return values;
}

inline constexpr std::array<float, 256> kUnsigned = magnitudes(2);
inline constexpr std::array<float, 256> kSigned = [] {
  const std::array<float, 256> up = magnitudes(1);  // 0, 127 bins, 1
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < 256; ++i) values[i] = i >= 127 ? up[i - 127] : -up[127 - i];
  return values;
}();

/// A magnitude times 10 for each decade that it is below the top one, and the bins of its decade.
struct InDecade {
  float value;
  int32_t bins;
  constexpr InDecade raised() const {
    const bool below = value <= 0.1F;
    const float lifted = value * 10.0F;
    return {below ? lifted : value, below ? bins >> 1 : bins};
  }
};

/// The index in magnitudes() of the bin of a magnitude in (0, 1]; those below all bins get the lowest one. This and the two functions
/// below have neither branches nor loops, so that compilers vectorise loops over them.
constexpr int32_t bin_of(float a, int32_t first) {
  static_assert(kDecades == 7);
  const auto [in_decade, bins] = InDecade{a, first << 6}.raised().raised().raised().raised().raised().raised();
  const auto wanted = static_cast<int32_t>((in_decade - 0.1F) * (static_cast<float>(bins) * (1 / 0.9F)));
  const int32_t bin = wanted < 0 ? 0 : wanted > bins - 1 ? bins - 1 : wanted;
  return bins - first + bin + 1;  // the decades below have bins - first bins
}

/// A value above 0 never becomes 0: with a second moment of 0 a step would be as large as epsilon is small.
constexpr uint8_t encode_unsigned(float a) {
  constexpr float kNearOne = (kUnsigned[254] + 1) / 2;
  const int32_t bin = bin_of(a, 2), code = a > 0 ? bin : 0;
  return static_cast<uint8_t>(a > kNearOne ? 255 : code);
}

/// x in [-1, 1]; -1 has no code of its own and gets code 0, the bin next to it.
constexpr uint8_t encode_signed(float x) {
  constexpr float kNearOne = (kSigned[254] + 1) / 2, kNearZero = kSigned[128] / 2;
  const float a = x < 0 ? -x : x;
  const int32_t near = bin_of(a, 1), bin = a > kNearZero ? near : 0;
  const int32_t code = x < 0 ? 127 - bin : 127 + bin;
  return static_cast<uint8_t>(x > kNearOne ? 255 : code);
}

}  // namespace st::moment_codes
