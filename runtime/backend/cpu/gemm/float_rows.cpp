#include "backend/cpu/gemm/float_rows.h"

#include "backend/cpu/convert.h"

namespace st::cpu::ST_ISA {

void read_floats(const void* data, DType type, int64_t first, int64_t stride, int64_t n, float* to) {
  const auto each = [&](auto element) {
    const auto* from = static_cast<const decltype(element)*>(data) + first;
    if (stride == 1) return each_vector<float>(n, [&](int64_t i, int64_t count) { store_part(to + i, load_part(from + i, count), count); });
    for (int64_t i = 0; i < n; ++i) to[i] = widen(from[i * stride]);
  };
  if (type == DType::f32) return each(float{});
  if (type == DType::bf16) return each(bf16{});
  each(f16{});
}

void write_floats(const float* from, int64_t n, void* data, DType type, int64_t first, int64_t stride) {
  const auto each = [&](auto element) {
    using T = decltype(element);
    T* to = static_cast<T*>(data) + first;
    if (stride == 1) return each_vector<float>(n, [&](int64_t i, int64_t count) { store_part(to + i, load_part(from + i, count), count); });
    for (int64_t i = 0; i < n; ++i) to[i * stride] = narrow<T>(from[i]);
  };
  if (type == DType::f32) return each(float{});
  if (type == DType::bf16) return each(bf16{});
  each(f16{});
}

}  // namespace st::cpu::ST_ISA
