#include "parts/unscale.h"

#include <atomic>
#include <bit>

#include "base/error.h"
#include "base/half_lanes.h"

namespace st {
namespace {

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
  each_row(array, workers, [&](int64_t offset, int64_t, int64_t count, int64_t stride) {
    if (!unscale_row<Type>(base + offset, count, stride, inverse)) finite.store(false, std::memory_order_relaxed);
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
      fail(Code::invalid_argument, text("unscale: a gradient must be f32, f64, bf16 or f16, got ", gradient.dtype));
  }
}

}  // namespace st
