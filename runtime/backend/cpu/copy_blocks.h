// Copies of strided blocks of bytes, shared by the ops that move slices along an axis.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd.h"
#include "base/dtype.h"

namespace st::cpu::ST_ISA {

/// `count` blocks of `bytes`, each `from_step` and `to_step` bytes after the previous one. A task moves at least kCopyGrain bytes.
inline void copy_blocks(Workers& workers, const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t bytes,
                        int64_t count) {
  constexpr int64_t kCopyGrain = 4 * kGrain;
  if (bytes == 0 || count == 0) return;
  const int64_t parts = (bytes + kCopyGrain - 1) / kCopyGrain;  // long blocks are split, short ones grouped
  const int64_t gathered = std::max<int64_t>(1, kCopyGrain / bytes);
  workers.run_range(count * parts, parts > 1 ? 1 : gathered, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / parts, first = i % parts * kCopyGrain;
      std::memcpy(to + block * to_step + first, from + block * from_step + first, static_cast<size_t>(std::min(kCopyGrain, bytes - first)));
    }
  });
}

/// A tensor split along an axis: `outer` blocks of `line` bytes; one index of the axis takes `step` bytes.
struct AlongAxis {
  int64_t outer, step, line;
  AlongAxis(const Operand& x, int32_t axis)
      : outer(x.shape.elements(0, axis)),
        step(x.shape.elements(axis + 1, x.shape.rank()) * bytes_of(x.dtype)),
        line(step * x.shape[axis]) {}
};

}  // namespace st::cpu::ST_ISA
