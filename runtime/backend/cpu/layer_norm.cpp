// y = (x - mean) rstd gamma + beta over rows of C elements. Far from zero, sums of the raw elements would lose their differences, so the
// sums are taken around an origin, the mean of the row's first quarter. (origin - mean)^2 <= 4 variance, so the variance's error is at most
// 5 times that of sums around the mean, and hardly more for ordinary rows.
// Backward, with n = (x - mean) rstd and g = dy gamma: dx = rstd (g - sum(g) / C - n sum(g n) / C); dgamma = sum_rows dy n and
// dbeta = sum_rows dy are computed in the same pass, as partial rows (column_sums.h). Slow operations follow a row's sums and would leave
// memory idle: a pass prefetches what the next rows read and write, and forward overlaps them with the next row's sums.
#include <cmath>

#include "backend/cpu/column_sums.h"
#include "backend/cpu/norm_row.h"
#include "backend/cpu/stream_ahead.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T, class G>
void layer_norm_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const G* const gamma = as<const G>(call.in[1]);
  const G* const beta = as<const G>(call.in[2]);
  T* const y = as<T>(call.out[0]);
  C* const means = as<C>(call.out[1]);
  C* const rstds = as<C>(call.out[2]);
  const double epsilon = call.attrs->real("epsilon");
  const int64_t columns = call.in[0].shape.last();
  const auto size = static_cast<double>(columns);
  const int64_t quarter = std::min(columns, std::max<int64_t>(64, columns / 4));
  const int64_t at_once = rows_at_once(columns), ahead = rows_ahead(at_once * columns);

  call.workers->run_range(call.out[1].elements(), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t rows = std::min(at_once, end - first);
      C origins[2], shifts[2];
      bool is_held[2];
      for (int64_t r = 0; r < rows; ++r)
        origins[r] = static_cast<C>(sum_of(x + (first + r) * columns, quarter) / static_cast<double>(quarter));
      for (int64_t r = 0; r < rows; ++r) {
        const T* const row = x + (first + r) * columns;
        const C origin = origins[r];
        const auto sums = sum_blocks<C, 2>(columns, [=](int64_t i, int64_t count, std::array<B, 2>& sums_of_lane) {
          __builtin_prefetch(row + i + ahead);
          const B d = load_part(row + i, count, origin) - B(origin);
          sums_of_lane[0] += d;
          sums_of_lane[1] = fma(d, d, sums_of_lane[1]);
        });
        const double shift = sums[0] / size;
        const double variance = sums[1] / size - shift * shift;
        shifts[r] = static_cast<C>(-shift);
        means[first + r] = static_cast<C>(static_cast<double>(origin) + shift);
        const double square = (variance < 0 ? 0 : variance) + epsilon;
        rstds[first + r] = static_cast<C>(1 / std::sqrt(square));
        is_held[r] = holds_squares<C>(square);
      }
      for (int64_t r = 0; r < rows; ++r) {
        const T* const row = x + (first + r) * columns;
        T* const normed = y + (first + r) * columns;
        if (!is_held[r]) {
          NormRow<T> wide(row, columns, true);
          wide.take_root(epsilon);
          means[first + r] = static_cast<C>(wide.mean);
          rstds[first + r] = static_cast<C>(wide.rstd);
          write_norm(wide, gamma, beta, normed);
          continue;
        }
        const B origin(origins[r]), rstd(rstds[first + r]), shift(shifts[r] * rstds[first + r]);
        each_vector<C>(columns, [=](int64_t i, int64_t count) {
          __builtin_prefetch(normed + i + ahead, 1);
          const B normal = fma(load_part(row + i, count) - origin, rstd, shift);
          store_part(normed + i, fma(normal, load_part(gamma + i, count), load_part(beta + i, count)), count);
        });
      }
    }
  });
}

template <class T, class G>
void layer_norm_backward_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const G* const gamma = as<const G>(call.in[1]);
  const C* const means = as<const C>(call.in[2]);
  const C* const rstds = as<const C>(call.in[3]);
  const T* const dy = as<const T>(call.in[4]);
  T* const dx = as<T>(call.out[0]);
  const int64_t columns = call.in[0].shape.last(), rows = call.in[2].elements(), ahead = rows_ahead(columns);
  const auto size = static_cast<double>(columns);
  C* const partial = reinterpret_cast<C*>(pointer_to(call.workspace));  // [blocks][dgamma, dbeta][columns]

  call.workers->run_range(rows, kRowBlock, [&](int64_t begin, int64_t end) {
    C* const of_gamma = partial + begin / kRowBlock * 2 * columns;
    C* const of_beta = of_gamma + columns;
    std::fill(of_gamma, of_gamma + 2 * columns, C(0));
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = x + r * columns;
      const T* const up = dy + r * columns;
      T* const down = dx + r * columns;
      const auto wide = [=] {
        NormRow<T> made(row, columns, true);
        made.take_root_of(rstds[r]);
        return made;
      };
      if (!holds_squares_of<C>(rstds[r])) {
        const NormRow<T> made = wide();
        add_gamma_gradient(made, up, of_gamma);
        for (int64_t i = 0; i < columns; ++i) of_beta[i] += widen(up[i]);
        write_norm_gradient(made, true, gamma, up, down);
        continue;
      }
      const C middle = means[r];
      const B mean(middle), rstd(rstds[r]);
      const auto sums = sum_blocks<C, 2>(columns, [=](int64_t i, int64_t count) {
        __builtin_prefetch(row + i + ahead);
        __builtin_prefetch(up + i + ahead);
        const B d = load_part(up + i, count), normal = (load_part(row + i, count, middle) - mean) * rstd;
        const B g = d * load_part(gamma + i, count);
        store_part(of_gamma + i, fma(d, normal, load_part(of_gamma + i, count)), count);
        store_part(of_beta + i, d + load_part(of_beta + i, count), count);
        return std::array{g, B(g * normal)};
      });
      if (!holds_terms<C>(std::abs(sums[0]) + std::abs(sums[1]))) {
        write_norm_gradient(wide(), true, gamma, up, down);
        continue;
      }
      const B along_one(static_cast<C>(sums[0] / size)), along_normal(static_cast<C>(sums[1] / size));
      each_vector<C>(columns, [=](int64_t i, int64_t count) {
        __builtin_prefetch(down + i + ahead, 1);
        const B normal = (load_part(row + i, count) - mean) * rstd;
        const B g = load_part(up + i, count) * load_part(gamma + i, count);
        store_part(down + i, rstd * (g - along_one - normal * along_normal), count);
      });
    }
  });
  add_partials(*call.workers, partial, row_blocks(rows), 2 * columns, columns, as<G>(call.out[1]));
  add_partials(*call.workers, partial + columns, row_blocks(rows), 2 * columns, columns, as<G>(call.out[2]));
}

void run_layer_norm(const Call& call) {
  with_norm_types("layer_norm", call.in[0].dtype, call.in[1].dtype, [&](auto t, auto g) { layer_norm_of<decltype(t), decltype(g)>(call); });
}

void run_layer_norm_backward(const Call& call) {
  with_norm_types("layer_norm_backward", call.in[0].dtype, call.in[1].dtype,
                  [&](auto t, auto g) { layer_norm_backward_of<decltype(t), decltype(g)>(call); });
}

}  // namespace

const Kernel kernel_layer_norm = {run_layer_norm};
const Kernel kernel_layer_norm_backward = {run_layer_norm_backward};

}  // namespace st::cpu::ST_ISA
