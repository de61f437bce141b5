// y = x rstd gamma, rstd = 1 / sqrt(mean(x^2) + epsilon) over rows of C elements.
// Backward, with n = x rstd and g = dy gamma: dx = rstd (g - n sum(g n) / C); dgamma = sum_rows dy n in the same pass (column_sums.h).
#include <cmath>

#include "backend/cpu/column_sums.h"
#include "backend/cpu/norm_row.h"
#include "backend/cpu/stream_ahead.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T, class G>
void rms_norm_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const G* const gamma = as<const G>(call.in[1]);
  T* const y = as<T>(call.out[0]);
  C* const rstds = as<C>(call.out[1]);
  const double epsilon = call.attrs->real("epsilon");
  const int64_t columns = call.in[0].shape.last();
  const int64_t at_once = rows_at_once(columns);

  call.workers->run_range(call.out[1].elements(), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t rows = std::min(at_once, end - first);
      bool is_held[2];
      for (int64_t r = first; r < first + rows; ++r) {
        const T* const row = x + r * columns;
        const double squares = sum_blocks<C, 1>(columns, [=](int64_t i, int64_t count) {
          const B v = load_part(row + i, count);
          return std::array{B(v * v)};
        })[0];
        const double square = squares / static_cast<double>(columns) + epsilon;
        rstds[r] = static_cast<C>(1 / std::sqrt(square));
        is_held[r - first] = holds_squares<C>(square);
      }
      for (int64_t r = first; r < first + rows; ++r) {
        const T* const row = x + r * columns;
        T* const normed = y + r * columns;
        if (!is_held[r - first]) {
          NormRow<T> wide(row, columns, false);
          wide.take_root(epsilon);
          rstds[r] = static_cast<C>(wide.rstd);
          write_norm<T, G>(wide, gamma, nullptr, normed);
          continue;
        }
        const B rstd(rstds[r]);
        each_vector<C>(columns, [=](int64_t i, int64_t count) {
          store_part(normed + i, load_part(row + i, count) * rstd * load_part(gamma + i, count), count);
        });
      }
    }
  });
}

template <class T, class G>
void rms_norm_backward_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const G* const gamma = as<const G>(call.in[1]);
  const C* const rstds = as<const C>(call.in[2]);
  const T* const dy = as<const T>(call.in[3]);
  T* const dx = as<T>(call.out[0]);
  const int64_t columns = call.in[0].shape.last(), rows = call.in[2].elements(), ahead = rows_ahead(columns);
  C* const partial = reinterpret_cast<C*>(pointer_to(call.workspace));  // [blocks][columns]

  call.workers->run_range(rows, kRowBlock, [&](int64_t begin, int64_t end) {
    C* const of_gamma = partial + begin / kRowBlock * columns;
    std::fill(of_gamma, of_gamma + columns, C(0));
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = x + r * columns;
      const T* const up = dy + r * columns;
      T* const down = dx + r * columns;
      const auto wide = [=] {
        NormRow<T> made(row, columns, false);
        made.take_root_of(rstds[r]);
        return made;
      };
      if (!holds_squares_of<C>(rstds[r])) {
        const NormRow<T> made = wide();
        add_gamma_gradient(made, up, of_gamma);
        write_norm_gradient(made, false, gamma, up, down);
        continue;
      }
      const B rstd(rstds[r]);
      const double sum = sum_blocks<C, 1>(columns, [=](int64_t i, int64_t count) {
        __builtin_prefetch(row + i + ahead);  // see layer_norm.cpp
        __builtin_prefetch(up + i + ahead);
        const B d = load_part(up + i, count), normal = load_part(row + i, count) * rstd;
        store_part(of_gamma + i, fma(d, normal, load_part(of_gamma + i, count)), count);
        return std::array{B(d * load_part(gamma + i, count) * normal)};
      })[0];
      if (!holds_terms<C>(std::abs(sum))) {
        write_norm_gradient(wide(), false, gamma, up, down);
        continue;
      }
      const B along_normal(static_cast<C>(sum / static_cast<double>(columns)));
      each_vector<C>(columns, [=](int64_t i, int64_t count) {
        __builtin_prefetch(down + i + ahead, 1);
        const B g = load_part(up + i, count) * load_part(gamma + i, count), normal = load_part(row + i, count) * rstd;
        store_part(down + i, rstd * (g - normal * along_normal), count);
      });
    }
  });
  add_partials(*call.workers, partial, row_blocks(rows), columns, columns, as<G>(call.out[1]));
}

void run_rms_norm(const Call& call) {
  with_norm_types("rms_norm", call.in[0].dtype, call.in[1].dtype, [&](auto t, auto g) { rms_norm_of<decltype(t), decltype(g)>(call); });
}

void run_rms_norm_backward(const Call& call) {
  with_norm_types("rms_norm_backward", call.in[0].dtype, call.in[1].dtype,
                  [&](auto t, auto g) { rms_norm_backward_of<decltype(t), decltype(g)>(call); });
}

}  // namespace

const Kernel kernel_rms_norm = {run_rms_norm};
const Kernel kernel_rms_norm_backward = {run_rms_norm_backward};

}  // namespace st::cpu::ST_ISA
