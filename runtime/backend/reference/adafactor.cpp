// adafactor: torch.optim.Adafactor (Shazeer and Stern 2018) on g = gradient * factor, at update t from 1. With b = t^beta2_decay,
// rho = min(lr, 1 / sqrt(t)) and rms(x) = |x| / sqrt(elements):
//   alpha = max(epsilon2, rms(p)) rho;  p *= 1 - lr weight_decay
//   over the last two dimensions, for each matrix: r_i += b (mean_j g_ij^2 - r_i);  c_j += b (mean_i g_ij^2 - c_j);
//     v_ij = r_i c_j / max(mean_i r_i, epsilon);  below two dimensions: v += b (g^2 - v)
//   u = g / sqrt(max(v, epsilon^2));  p -= alpha / max(1, rms(u) / clip_threshold) u
// epsilon 0 is the machine epsilon of the parameter's dtype. State: r [..., rows] and c [..., columns], or v.
// adafactor_sums, _size and _step: the same of a piece, with sums over the ranks between them.
#include <algorithm>
#include <limits>

#include "backend/piece_parts.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {
namespace {

struct Variances {
  Variances(const Shape& shape, const Operand& row_slot, const Operand& column_slot)
      : columns(shape.last()), rows(shape[shape.rank() - 2]), row(row_slot), column(column_slot) {}

  double at(int64_t r, int64_t c, double epsilon) const {
    const int64_t matrix = r / rows;
    double mean = 0;
    for (int64_t k = 0; k < rows; ++k) mean += get(row, matrix * rows + k);
    return get(row, r) * get(column, matrix * columns + c) / std::max(mean / static_cast<double>(rows), epsilon);
  }

  int64_t columns, rows;  // of the whole
  const Operand &row, &column;
};

/// The constants of an update.
struct Rates {
  Rates(const Call& call, const UpdateInputs& in) {
    const double given = call.attrs->real("epsilon");
    const double machine =
        in.parameter.dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
    epsilon = given > 0 ? given : machine;
    least = std::max(epsilon * epsilon, in.limits.least_square);
    take = std::pow(in.number, call.attrs->real("beta2_decay"));
    rho = std::min(in.rate, 1 / std::sqrt(in.number));
  }
  double epsilon, least, take, rho;

  void move(const Operand& state, int64_t i, double to) const { set(state, i, get(state, i) + take * (to - get(state, i))); }
};

void update_factors(const Call& call, const UpdateInputs& in, const Rates& rates) {
  const Variances f(call.writes[0].shape, call.writes[1], call.writes[2]);
  const int64_t matrices = f.rows * f.columns == 0 ? 0 : call.writes[0].elements() / (f.rows * f.columns);
  const auto square = [&](int64_t matrix, int64_t r, int64_t c) {
    const double g = in.true_gradient((matrix * f.rows + r) * f.columns + c);
    return g * g;
  };
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t r = 0; r < f.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < f.columns; ++c) sum += square(m, r, c);
      rates.move(f.row, m * f.rows + r, sum / static_cast<double>(f.columns));
    }
    for (int64_t c = 0; c < f.columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < f.rows; ++r) sum += square(m, r, c);
      rates.move(f.column, m * f.columns + c, sum / static_cast<double>(f.rows));
    }
  }
}

void move_variance(const UpdateInputs& in, const Rates& rates, const Operand& variance) {
  for (int64_t i = 0; i < variance.elements(); ++i) rates.move(variance, i, in.true_gradient(i) * in.true_gradient(i));
}

/// p -= alpha / max(1, rms(u) / clip_threshold) u, from the sums of squares of all `elements` of p and u.
template <class Direction>
void step(const Call& call, const UpdateInputs& in, const Rates& rates, double elements, double parameter_squares, double squares,
          const Direction& direction) {
  const Operand& parameter = call.writes[0];
  const double alpha = std::max(call.attrs->real("epsilon2"), std::sqrt(parameter_squares / elements)) * rates.rho;
  const double by = alpha / std::max(1.0, std::sqrt(squares / elements) / call.attrs->real("clip_threshold"));
  for (int64_t i = 0; i < parameter.elements(); ++i) set(parameter, i, get(parameter, i) * (1 - in.rate * in.decay) - by * direction(i));
  write_copy(call);
}

void adafactor(const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand& parameter = call.writes[0];
  const int64_t n = parameter.elements();
  if (n == 0) return;
  const Rates rates(call, in);
  const bool factored = parameter.shape.rank() > 1;
  factored ? update_factors(call, in, rates) : move_variance(in, rates, call.writes[1]);
  const auto direction = [&](int64_t i) {
    const int64_t columns = factored ? parameter.shape.last() : 1;
    const double v = factored ? Variances(parameter.shape, call.writes[1], call.writes[2]).at(i / columns, i % columns, rates.epsilon)
                              : get(call.writes[1], i);
    return in.true_gradient(i) / std::sqrt(std::max(v, rates.least));
  };
  double squares = 0, parameter_squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    squares += direction(i) * direction(i);
    parameter_squares += get(parameter, i) * get(parameter, i);
  }
  step(call, in, rates, static_cast<double>(n), parameter_squares, squares, direction);
}

// --- of a piece

void adafactor_sums(const Call& call) {
  const UpdateInputs in(call, call.in[4]);
  const PieceParts piece(call.in[0].shape, *call.attrs);
  const int64_t terms = call.out[0].elements(), rows = terms == 1 ? 0 : piece.whole_rows();
  double* const sums = as<double>(call.out[0]);
  std::fill_n(sums, terms, 0.0);
  piece.each_run(piece.rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double g = in.true_gradient(in_piece + i), p = get(call.in[4], in_piece + i);
      sums[terms - 1] += p * p;
      if (terms == 1) continue;
      sums[(in_whole + i) / piece.whole_columns()] += g * g;
      sums[rows + (in_whole + i) % piece.whole_columns()] += g * g;
    }
  });
}

/// The update's element i of the piece. `variances`: the first of their slots among those written.
class PieceDirection {
 public:
  PieceDirection(const Call& call, const UpdateInputs& in, const Rates& rates, size_t variances)
      : in_(in),
        rates_(rates),
        piece_(call.in[0].shape, *call.attrs),
        variances_(&call.writes[variances]),
        factored_(call.in[0].shape.rank() > 1) {}

  /// take(i, u) for all elements.
  template <class Take>
  void each(const Take& take) const {
    piece_.each_run(piece_.rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        take(in_piece + i, in_.true_gradient(in_piece + i) / std::sqrt(std::max(variance(in_whole + i, in_piece + i), rates_.least)));
    });
  }

 private:
  double variance(int64_t in_whole, int64_t in_piece) const {
    if (!factored_) return get(variances_[0], in_piece);
    const int64_t columns = piece_.whole_columns();
    return Variances({piece_.whole_rows(), columns}, variances_[0], variances_[1])
        .at(in_whole / columns, in_whole % columns, rates_.epsilon);
  }

  const UpdateInputs& in_;
  const Rates& rates_;
  PieceParts piece_;
  const Operand* variances_;
  bool factored_;
};

void adafactor_size(const Call& call) {
  double& squares = as<double>(call.out[0])[0];
  squares = 0;
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Rates rates(call, in);
  const PieceParts piece(call.in[0].shape, *call.attrs);
  if (call.in[0].shape.rank() > 1) {
    const auto *row_sums = as<const double>(call.in[4]), *column_sums = row_sums + piece.whole_rows();
    for (int64_t r = 0; r < piece.whole_rows(); ++r)
      rates.move(call.writes[0], r, row_sums[r] / static_cast<double>(piece.whole_columns()));
    for (int64_t c = 0; c < piece.whole_columns(); ++c)
      rates.move(call.writes[1], c, column_sums[c] / static_cast<double>(piece.whole_rows()));
  } else {
    move_variance(in, rates, call.writes[0]);
  }
  PieceDirection(call, in, rates, 0).each([&](int64_t, double u) { squares += u * u; });
}

void adafactor_step(const Call& call) {
  const Operand& parameter = call.writes[0];
  if (is_skipped(call) || parameter.elements() == 0) return;
  const UpdateInputs in(call);
  const Rates rates(call, in);
  const auto elements = static_cast<double>(parameter.elements() * call.attrs->integer("ranks"));
  auto* const directions = reinterpret_cast<double*>(pointer_to(call.workspace));
  PieceDirection(call, in, rates, 1).each([&](int64_t i, double u) { directions[i] = u; });
  step(call, in, rates, elements, get(call.in[4], call.in[4].elements() - 1), get(call.in[5], 0), [&](int64_t i) { return directions[i]; });
}

}  // namespace

constinit const Kernel kernel_adafactor{adafactor};
constinit const Kernel kernel_adafactor_sums{adafactor_sums};
constinit const Kernel kernel_adafactor_size{adafactor_size};
constinit const Kernel kernel_adafactor_step{adafactor_step};

}  // namespace st::reference
