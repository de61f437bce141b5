// y[o, j, i] = x[o, index[o, j, i], i] around the axis. Backward clears dx and adds dy to the elements that gather read, in index order.
// Tasks own whole outer slices, so no two of them write one element.
#include "backend/cpu/lines.h"
#include "backend/cpu/scalar.h"
#include "backend/index_check.h"

namespace st::cpu::ST_ISA {
namespace {

void check_all(std::string_view op, const Operand& index, int64_t size) {
  for (int64_t i = 0; i < index.elements(); ++i) check_index(op, integer_of(index, i), i, index.shape, size);
}

template <class Bits>
void gather_bits(const Call& call, int32_t axis) {
  const Operand& index = call.in[1];
  const Lines x_lines(call.in[0].shape, axis), y_lines(index.shape, axis);
  check_all("gather", index, x_lines.size);
  const Bits* const x = as<const Bits>(call.in[0]);
  Bits* const y = as<Bits>(call.out[0]);
  const int64_t inner = y_lines.inner;
  call.workers->run_range(y_lines.outer * y_lines.size, rows_per_task(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t slice = row / y_lines.size * x_lines.size;
      for (int64_t i = 0; i < inner; ++i) y[row * inner + i] = x[(slice + integer_of(index, row * inner + i)) * inner + i];
    }
  });
}

void run_gather(const Call& call) {
  const int32_t axis = normalize_axis("gather", call.attrs->integer("axis"), call.in[0].shape.rank());
  switch (bytes_of(call.out[0].dtype)) {
    case 2:
      return gather_bits<uint16_t>(call, axis);
    case 4:
      return gather_bits<uint32_t>(call, axis);
    default:
      return gather_bits<uint64_t>(call, axis);
  }
}

template <class T>
void gather_backward_of(const Call& call) {
  using C = Compute<T>;
  const Operand& index = call.in[0];
  const int32_t axis = normalize_axis("gather_backward", call.attrs->integer("axis"), index.shape.rank());
  const Lines dy_lines(index.shape, axis), dx_lines(call.out[0].shape, axis);
  check_all("gather_backward", index, dx_lines.size);
  const T* const dy = as<const T>(call.in[1]);
  T* const dx = as<T>(call.out[0]);
  C* const sums = kIsHalf<T> ? reinterpret_cast<C*>(pointer_to(call.workspace)) : reinterpret_cast<C*>(dx);
  const int64_t inner = dy_lines.inner, slice = dx_lines.size * inner;
  call.workers->run_range(dx_lines.outer, rows_per_task(slice), [&](int64_t begin, int64_t end) {
    std::fill(sums + begin * slice, sums + end * slice, C(0));
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t at = o * dy_lines.size * inner; at < (o + 1) * dy_lines.size * inner; ++at) {
        sums[o * slice + integer_of(index, at) * inner + at % inner] += widen(dy[at]);
      }
    }
    if constexpr (kIsHalf<T>) {
      for (int64_t i = begin * slice; i < end * slice; ++i) dx[i] = narrow<T>(sums[i]);
    }
  });
}

void run_gather_backward(const Call& call) {
  with_float("gather_backward", call.out[0].dtype, [&](auto t) { gather_backward_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_gather = {run_gather};
const Kernel kernel_gather_backward = {run_gather_backward};

}  // namespace st::cpu::ST_ISA
