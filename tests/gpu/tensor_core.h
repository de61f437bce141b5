// How tensor cores add: the same bits on a CPU. Those of sm_90 as fitted on an H100 (README.md), wrapper_probes compares; those of sm_80 as
// others found them on an A100.
#pragma once
#include <algorithm>
#include <cmath>

namespace probe {

inline float toward_zero(double v) {
  float f = float(v);
  return std::fabs(double(f)) > std::fabs(v) ? std::nextafter(f, 0.0f) : f;
}

/// A model of how a tensor core adds. Every term and C are cut to a multiple of 2^(e - 23 - extra), where e is the largest exponent among C
/// and the products of a group, and added; the sum is cut or rounded to fp32. `factors`: a product's exponent is the sum of its
/// factors', 1.5 * 1.5 counts as 2^0.
struct Model {
  int group, extra;
  bool factors, nearest;
  template <class Term>
  float operator()(float c, int k, const Term& term) const {
    for (int first = 0; first < k; first += group) {
      double terms[16], sum = 0;
      int top = c != 0 ? std::ilogb(c) : -1000;
      for (int i = 0; i < group; ++i) {
        auto [x, y] = term(first + i);
        terms[i] = double(x) * y;
        if (terms[i] != 0) top = std::max(top, factors ? std::ilogb(x) + std::ilogb(y) : std::ilogb(terms[i]));
      }
      if (top == -1000) continue;  // zeros alone
      double scale = std::ldexp(1.0, 23 + extra - top), unit = std::ldexp(1.0, top - 23 - extra);
      for (int i = 0; i < group; ++i) sum += std::trunc(terms[i] * scale) * unit;
      sum += std::trunc(c * scale) * unit;
      c = nearest ? float(sum) : toward_zero(sum);
    }
    return c;
  }
};

/// mma.sync m16n8k16 of bf16 and fp16 and wgmma k16 of bf16; m16n8k8 of tf32.
inline constexpr Model kTensorCore16{16, 2, true, false}, kTensorCore8{8, 2, true, false};
/// m16n8k16 on sm_80, two groups of 8 with one bit more than fp32's (github.com/north-numerical-computing/MATLAB-tensor-core, A100TC.m).
inline constexpr Model kTensorCoreOfA100{8, 1, true, false};

}  // namespace probe
