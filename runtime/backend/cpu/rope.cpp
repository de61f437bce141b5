// Rotates the pair (d, d + D/2) of x [B, T, H, D] by (t + offset) base^(-2d/D). Sines and cosines are computed once per t, in double: 16
// steps of t start from an exact angle and continue by rotation, with an error below 1e-14.
#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kSteps = 16;

/// table [T][cos, sin][half]
template <class C>
void make_table(const Call& call, int64_t times, int64_t half, C* table) {
  const double base = call.attrs->real("base"), direction = call.attrs->flag("inverse") ? -1 : 1;
  const auto offset = static_cast<double>(call.attrs->integer("offset"));
  call.workers->run_range(times, kSteps, [&](int64_t begin, int64_t end) {
    for (int64_t d = 0; d < half; ++d) {
      const double speed = direction * std::pow(base, -static_cast<double>(d) / static_cast<double>(half));
      const double turn_cos = std::cos(speed), turn_sin = std::sin(speed);
      const double start = (static_cast<double>(begin) + offset) * speed;
      double c = std::cos(start), s = std::sin(start);
      for (int64_t t = begin; t < end; ++t) {
        table[t * 2 * half + d] = static_cast<C>(c);
        table[(t * 2 + 1) * half + d] = static_cast<C>(s);
        const double next = c * turn_cos - s * turn_sin;
        s = s * turn_cos + c * turn_sin;
        c = next;
      }
    }
  });
}

template <class T>
void rope_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const Shape& shape = call.in[0].shape;
  const int64_t times = shape[1], heads = shape[2], half = shape[3] / 2;
  C* const table = reinterpret_cast<C*>(pointer_to(call.workspace));
  make_table(call, times, half, table);
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  call.workers->run_range(shape[0] * times, rows_per_task(heads * 2 * half), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const C* const cosines = table + row % times * 2 * half;
      const C* const sines = cosines + half;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at = (row * heads + h) * 2 * half;
        each_vector<C>(half, [&](int64_t d, int64_t count) {
          const B c = load_part(cosines + d, count), s = load_part(sines + d, count);
          const B a = load_part(x + at + d, count), b = load_part(x + at + half + d, count);
          store_part(y + at + d, a * c - b * s, count);
          store_part(y + at + half + d, b * c + a * s, count);
        });
      }
    }
  });
}

void run_rope(const Call& call) {
  with_float("rope", call.out[0].dtype, [&](auto t) { rope_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_rope = {run_rope};

}  // namespace st::cpu::ST_ISA
