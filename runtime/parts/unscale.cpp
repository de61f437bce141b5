#include "parts/unscale.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>

#include "base/error.h"

namespace st {
namespace {

constexpr int64_t kGrain = 1 << 16;  // elements a task: a few dozen microseconds

// What base/float16.h says, with selects for its branches, so that compilers make vectors of it. Where fp32 is flushed to zero
// (base/float_mode.h) these are right too: what is denormal in f16 is normal there.

float wide_of_bf16(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

uint16_t bf16_from(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40 : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float wide_of_f16(uint16_t h) {
  const uint32_t sign = (uint32_t{h} & 0x8000) << 16, shifted = (uint32_t{h} & 0x7FFF) << 13;
  const uint32_t exponent = shifted & 0x0F800000;
  // A denormal, put behind the point of 2^-14, less 2^-14: the subtraction is exact.
  const auto denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + (uint32_t{113} << 23)) - 0x1p-14F);
  const uint32_t normal = shifted + (uint32_t{112} << 23), special = shifted | 0x7F800000;
  return std::bit_cast<float>(sign | (exponent == 0 ? denormal : exponent == 0x0F800000 ? special : normal));
}

uint16_t f16_from(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Below 2^-14 the adder rounds: half of fp32's digits stand below the last one of an f16 denormal.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
  const uint32_t rebased = magnitude - (uint32_t{112} << 23);
  const uint32_t normal = (rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13;
  const uint32_t special = magnitude > 0x7F800000 ? 0x7E00 : 0x7C00;
  const uint32_t finite = magnitude < 0x38800000 ? denormal : normal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x47800000 ? special : finite));
}

struct F32 {
  using Element = float;
  static float unscaled(float g, float inverse) { return g * inverse; }
  static bool is_finite(float g) { return (std::bit_cast<uint32_t>(g) & 0x7F800000) != 0x7F800000; }
};
struct F64 {
  using Element = double;
  static double unscaled(double g, double inverse) { return g * inverse; }
  static bool is_finite(double g) { return (std::bit_cast<uint64_t>(g) & 0x7FF0000000000000) != 0x7FF0000000000000; }
};
struct Bf16 {
  using Element = uint16_t;
  static uint16_t unscaled(uint16_t g, float inverse) { return bf16_from(wide_of_bf16(g) * inverse); }
  static bool is_finite(uint16_t g) { return (g & 0x7F80) != 0x7F80; }
};
struct F16 {
  using Element = uint16_t;
  static uint16_t unscaled(uint16_t g, float inverse) { return f16_from(wide_of_f16(g) * inverse); }
  static bool is_finite(uint16_t g) { return (g & 0x7C00) != 0x7C00; }
};

/// Memory order is as good as any: a transposed array without gaps is one row.
bool has_no_gaps(const GradientArray& array) {
  int64_t reach = 1;
  for (int32_t d = 0; d < array.shape.rank(); ++d) reach += (array.shape[d] - 1) * array.strides[static_cast<size_t>(d)];
  return reach == array.shape.elements();
}

template <class Type, class Factor>
bool unscale_row(typename Type::Element* g, int64_t count, int64_t stride, Factor inverse) {
  uint32_t bad = 0;
  if (inverse == 1) {
    for (int64_t i = 0; i < count; ++i) bad |= Type::is_finite(g[i * stride]) ? 0U : 1U;
  } else if (stride == 1) {  // apart, for vectors
    for (int64_t i = 0; i < count; ++i) {
      g[i] = Type::unscaled(g[i], inverse);
      bad |= Type::is_finite(g[i]) ? 0U : 1U;
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      g[i * stride] = Type::unscaled(g[i * stride], inverse);
      bad |= Type::is_finite(g[i * stride]) ? 0U : 1U;
    }
  }
  return bad == 0;
}

template <class Type, class Factor>
bool unscale_as(const GradientArray& array, Factor inverse, Workers& workers) {
  auto* const base = static_cast<typename Type::Element*>(array.data);
  std::atomic<bool> finite = true;
  const auto look = [&](bool row) {
    if (!row) finite.store(false, std::memory_order_relaxed);
  };
  if (array.shape.rank() == 0 || has_no_gaps(array)) {
    workers.run_range(array.shape.elements(), kGrain,
                      [&](int64_t begin, int64_t end) { look(unscale_row<Type>(base + begin, end - begin, 1, inverse)); });
    return finite;
  }
  const int32_t last = array.shape.rank() - 1;
  const int64_t length = array.shape[last], rows = array.shape.elements(0, last);
  workers.run_range(rows, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = 0, rest = row;
      for (int32_t d = last - 1; d >= 0; --d) {
        offset += rest % array.shape[d] * array.strides[static_cast<size_t>(d)];
        rest /= array.shape[d];
      }
      look(unscale_row<Type>(base + offset, length, array.strides[static_cast<size_t>(last)], inverse));
    }
  });
  return finite;
}

}  // namespace

bool unscale(const GradientArray& gradient, double inverse, Workers& workers) {
  if (gradient.shape.elements() == 0) return true;
  switch (gradient.dtype) {
    case DType::f32:
      return unscale_as<F32>(gradient, static_cast<float>(inverse), workers);
    case DType::f64:
      return unscale_as<F64>(gradient, inverse, workers);
    case DType::bf16:
      return unscale_as<Bf16>(gradient, static_cast<float>(inverse), workers);
    case DType::f16:
      return unscale_as<F16>(gradient, static_cast<float>(inverse), workers);
    default:
      fail(Code::invalid_argument, text("unscale: a gradient is ", gradient.dtype, "; f32, f64, bf16 and f16 are taken"));
  }
}

}  // namespace st
