// Dimension i of y is dimension order[i] of x. Dimensions that stay together merge. If the last one stays last, whole runs are copied; else
// the two dimensions that are contiguous in x and in y are transposed in square tiles, so that both sides use whole cache lines.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/permutation.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kTile = 16;

template <class Bits>
void cross_tile(const Bits* x, int64_t x_step, Bits* y, int64_t y_step, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_step + c] = x[c * x_step + r];
  }
}

template <class Bits>
void transpose_bits(const Call& call) {
  const Permutation p(call.in[0].shape, call.attrs->ints("order"));
  const Bits* const x = as<const Bits>(call.in[0]);
  Bits* const y = as<Bits>(call.out[0]);
  const auto last = static_cast<size_t>(p.rank - 1);
  if (p.elements == 0) return;

  // `crossed`: the dimension that is contiguous in x; if it is also the last of y, runs are copied.
  size_t crossed = 0;
  while (p.x_stride[crossed] != 1) ++crossed;
  const bool runs = crossed == last;
  const int64_t columns = p.size[last], rows = runs ? 1 : p.size[crossed];
  const int64_t bands = (rows + kTile - 1) / kTile;  // rows of tiles, the unit of work
  const int64_t others = p.elements / (rows * columns);
  call.workers->run_range(others * bands, rows_per_task(std::min(rows, kTile) * columns), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit / bands, from = 0, to = 0;
      for (size_t d = last; d-- > 0;) {
        if (d == crossed) continue;
        const int64_t place = rest % p.size[d];
        rest /= p.size[d];
        from += place * p.x_stride[d];
        to += place * p.y_stride[d];
      }
      if (runs) {
        std::copy_n(x + from, columns, y + to);
        continue;
      }
      const int64_t row = unit % bands * kTile;
      for (int64_t c = 0; c < columns; c += kTile) {
        cross_tile(x + from + row + c * p.x_stride[last], p.x_stride[last], y + to + row * p.y_stride[crossed] + c, p.y_stride[crossed],
                   std::min(kTile, rows - row), std::min(kTile, columns - c));
      }
    }
  });
}

void run_transpose(const Call& call) {
  switch (bytes_of(call.out[0].dtype)) {
    case 1:
      return transpose_bits<uint8_t>(call);
    case 2:
      return transpose_bits<uint16_t>(call);
    case 4:
      return transpose_bits<uint32_t>(call);
    default:
      return transpose_bits<uint64_t>(call);
  }
}

}  // namespace

const Kernel kernel_transpose = {run_transpose};

}  // namespace st::cpu::ST_ISA
