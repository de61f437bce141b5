// Reductions over axes: rows, columns, or a plain loop (merged_axes.h).
#pragma once

#include "backend/cpu/column_sums.h"
#include "backend/cpu/row_chunks.h"
#include "backend/merged_axes.h"

namespace st::cpu::ST_ISA {

/// y = scale * sum over the axes. Rows: chunks of kGrain, added in double. Columns: column_sums.h. A sum whose float lanes overflow is
/// recomputed in double, so that the mean of large numbers is finite.
template <class T>
void sum_axes(const Call& call, const MergedAxes& axes, double scale) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  Workers& workers = *call.workers;
  const auto give = [&](int64_t at, double sum) { y[at] = narrow<T>(static_cast<C>(scale * sum)); };

  if (!axes.regular) {
    workers.run_range(axes.kept(), rows_per_task(axes.removed), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        double sum = 0;
        axes.each(k, [&](int64_t at) { sum += static_cast<double>(widen(x[at])); });
        give(k, sum);
      }
    });
    return;
  }
  const int64_t n = axes.gone, inner = axes.inner;
  if (n == 1) {  // nothing to add: a micro-batch of one sequence
    workers.run_range(axes.outer * inner, kGrain, [&](int64_t begin, int64_t end) {
      each_vector<C>(end - begin, [&](int64_t i, int64_t count) {
        store_part(y + begin + i, (B(C(0)) + load_part(x + begin + i, count)) * B(static_cast<C>(scale)), count);
      });
    });
    return;
  }
  if (inner == 1) {
    const int64_t chunks = chunks_of(n);
    double* const partial = reinterpret_cast<double*>(pointer_to(call.workspace));
    workers.run_range(axes.outer * chunks, chunks > 1 ? 1 : rows_per_task(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i % chunks * kGrain;
        const double sum = sum_of(x + i / chunks * n + from, std::min(kGrain, n - from));
        if (chunks == 1) {
          give(i, sum);
        } else {
          partial[i] = sum;
        }
      }
    });
    if (chunks == 1) return;
    for (int64_t k = 0; k < axes.outer; ++k) {
      double sum = 0;
      for (int64_t j = 0; j < chunks; ++j) sum += partial[k * chunks + j];
      give(k, sum);
    }
    return;
  }
  const int64_t blocks = std::max<int64_t>(1, row_blocks(n));
  C* const partial = reinterpret_cast<C*>(pointer_to(call.workspace));  // [outer][blocks][inner]
  workers.run_range(axes.outer * blocks, rows_per_task(std::min(n, kRowBlock) * inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kRowBlock, rows = std::min(kRowBlock, n - first);
      const T* const from = x + (i / blocks * n + first) * inner;
      each_vector<C>(inner, [&](int64_t c, int64_t count) {
        B sum(C(0));
        for (int64_t r = 0; r < rows; ++r) sum += load_part(from + r * inner + c, count);
        if (blocks == 1) {
          store_part(y + i * inner + c, sum * B(static_cast<C>(scale)), count);
        } else {
          store_part(partial + i * inner + c, sum, count);
        }
      });
    }
  });
  if (blocks > 1)
    for (int64_t k = 0; k < axes.outer; ++k)
      add_partials(workers, partial + k * blocks * inner, blocks, inner, inner, y + k * inner, scale);
  // Recompute sums that overflowed float lanes.
  workers.run_range(axes.outer * inner, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (!std::isfinite(widen(y[i]))) give(i, sum_in_double(x + i / inner * n * inner + i % inner, n, inner));
  });
}

}  // namespace st::cpu::ST_ISA
