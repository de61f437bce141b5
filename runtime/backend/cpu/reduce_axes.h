// Reductions over axes. Neighbouring axes that are all kept or all reduced merge, so nearly every case is [outer, gone, inner]: rows when
// inner is 1, else columns. Anything else (kept and reduced axes alternate) takes a plain loop.
#pragma once

#include "backend/cpu/column_sums.h"

namespace st::cpu::ST_ISA {

struct ReduceAxes {
  int64_t outer = 1, gone = 1, inner = 1;
  bool regular = true;
  int64_t removed = 1;  // elements reduced to one
  // For the plain loop: kept and reduced dimensions with their strides.
  int kept_rank = 0, gone_rank = 0;
  std::array<int64_t, kMaxDims> kept_size{}, kept_stride{}, gone_size{}, gone_stride{};

  ReduceAxes(std::string_view op, const Shape& x, const Ints& axes) {
    std::array<bool, kMaxDims> goes{};
    for (const int64_t axis : axes) goes[static_cast<size_t>(normalize_axis(op, axis, x.rank()))] = true;
    if (axes.empty()) goes.fill(true);
    int turns = 0;  // changes between kept and reduced along the shape
    bool last = false;
    for (int32_t i = 0; i < x.rank(); ++i) {
      const bool now = goes[static_cast<size_t>(i)];
      const int64_t stride = x.elements(i + 1, x.rank());
      if (now) removed *= x[i];
      if (x[i] == 1) continue;
      if (now != last) ++turns;
      last = now;
      (now ? gone : turns == 0 ? outer : inner) *= x[i];
      auto& size = now ? gone_size : kept_size;
      auto& step = now ? gone_stride : kept_stride;
      int& rank = now ? gone_rank : kept_rank;
      size[static_cast<size_t>(rank)] = x[i];
      step[static_cast<size_t>(rank++)] = stride;
    }
    regular = turns <= 2;
    if (regular && gone_rank == 0) gone = 1;
  }

  int64_t kept() const { return regular ? outer * inner : kept_elements(); }
  int64_t kept_elements() const {
    int64_t n = 1;
    for (int i = 0; i < kept_rank; ++i) n *= kept_size[static_cast<size_t>(i)];
    return n;
  }

  /// Calls body(offset) for the elements reduced to output element `index`, in row-major order.
  template <class Body>
  void each(int64_t index, const Body& body) const {
    int64_t base = 0;
    for (int i = kept_rank; i-- > 0;) {
      base += index % kept_size[static_cast<size_t>(i)] * kept_stride[static_cast<size_t>(i)];
      index /= kept_size[static_cast<size_t>(i)];
    }
    for (int64_t n = 0; n < removed; ++n) {
      int64_t at = base, rest = n;
      for (int i = gone_rank; i-- > 0;) {
        at += rest % gone_size[static_cast<size_t>(i)] * gone_stride[static_cast<size_t>(i)];
        rest /= gone_size[static_cast<size_t>(i)];
      }
      body(at);
    }
  }
};

inline int64_t chunks_of(int64_t n) { return std::max<int64_t>(1, (n + kGrain - 1) / kGrain); }

inline int64_t workspace_of_sum(std::span<const Type> in, std::span<const Type>, const Attrs& attrs, int) {
  const ReduceAxes axes("sum", in[0].shape, attrs.ints("axes"));
  if (!axes.regular) return 0;
  if (axes.inner == 1) return chunks_of(axes.gone) == 1 ? 0 : axes.outer * chunks_of(axes.gone) * 8;
  const int64_t blocks = row_blocks(axes.gone);
  return blocks <= 1 ? 0 : axes.outer * blocks * axes.inner * bytes_of_compute(in[0].dtype);
}

/// y = scale * sum over the axes. Rows: chunks of kGrain, added in double. Columns: column_sums.h. A sum whose float lanes overflow is
/// recomputed in double, so that the mean of large numbers is finite.
template <class T>
void sum_axes(const Call& call, const ReduceAxes& axes, double scale) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = call.in[0].as<const T>();
  T* const y = call.out[0].as<T>();
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
    double* const partial = reinterpret_cast<double*>(call.workspace.data());
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
  C* const partial = reinterpret_cast<C*>(call.workspace.data());  // [outer][blocks][inner]
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
