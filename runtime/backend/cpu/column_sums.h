// Column sums over rows, as in every bias gradient. Blocks of kRowBlock rows are added in order, each into one partial row in the
// workspace. The partial rows are then added in double, in order. So the order depends only on the number of rows.
#pragma once

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {

/// sums[c] += row[c], c < n
template <class C>
void add_row(const C* row, int64_t n, double* sums) {
  int64_t c = 0;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<C, float>) {
    for (; c + 8 <= n; c += 8)
      _mm512_store_pd(sums + c, _mm512_add_pd(_mm512_load_pd(sums + c), _mm512_cvtps_pd(_mm256_loadu_ps(row + c))));
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<C, float>) {
    for (; c + 4 <= n; c += 4) _mm256_store_pd(sums + c, _mm256_add_pd(_mm256_load_pd(sums + c), _mm256_cvtps_pd(_mm_loadu_ps(row + c))));
  }
#endif
  for (; c < n; ++c) sums[c] += static_cast<double>(row[c]);
}

/// out[c] = scale * sum over blocks of partial[block * stride + c], c < columns.
template <class T>
void add_partials(Workers& workers, const Compute<T>* partial, int64_t blocks, int64_t stride, int64_t columns, T* out, double scale = 1) {
  constexpr int64_t kTile = 256;
  const int64_t tiles_per_task = std::max<int64_t>(1, kGrain / (kTile * std::max<int64_t>(1, blocks)));
  workers.run_range(columns, kTile * tiles_per_task, [&](int64_t begin, int64_t end) {
    alignas(64) double sum[kTile];
    for (int64_t from = begin; from < end; from += kTile) {
      const int64_t n = std::min(kTile, end - from);
      std::fill(sum, sum + kTile, 0.0);
      for (int64_t b = 0; b < blocks; ++b) add_row(partial + b * stride + from, n, sum);
      for (int64_t c = 0; c < n; ++c) out[from + c] = narrow<T>(static_cast<Compute<T>>(scale * sum[c]));
    }
  });
}

}  // namespace st::cpu::ST_ISA
