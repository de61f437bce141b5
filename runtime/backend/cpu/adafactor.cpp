// torch.optim.Adafactor (Shazeer and Stern 2018); the formula is in reference/adafactor.cpp. Three passes: squares of the gradient by row
// and by column (column_sums.h), with |p|; the size of the update; the update. An element's update depends only on the gradient and on its
// row's and column's variance, so it is computed twice and not stored.
// Workspace: partial column sums [blocks of rows][columns]; then, in double, the mean of each matrix's row variances, and the sums of
// squares of each row, of the update and of the parameter.
#include "backend/cpu/adafactor_work.h"
#include "backend/cpu/column_sums.h"
#include "backend/cpu/optimizer_pass.h"
#include "backend/piece_parts.h"

namespace st::cpu::ST_ISA {
namespace {

/// The passes of an update, over a parameter or a piece of one; `workspace` has what adafactor_work.h says.
template <class P>
class Adafactor {
  using B = Batch<P>;

 public:
  explicit Adafactor(const Call& call)
      : call_(call),
        inputs_(call),
        matrices_(call.in[0].shape),
        units_(matrices_),
        epsilon_(call.attrs->real("epsilon") > 0 ? call.attrs->real("epsilon") : std::numeric_limits<P>::epsilon()),
        least_(std::max(static_cast<P>(epsilon_ * epsilon_), std::numeric_limits<P>::min())),
        take_(std::pow(inputs_.number, call.attrs->real("beta2_decay"))),
        partial_(reinterpret_cast<P*>(pointer_to(call.workspace))),
        mean_variance_(reinterpret_cast<double*>(pointer_to(call.workspace) + partial_bytes(call.in[0].dtype, matrices_))),
        update_squares_(mean_variance_ + matrices_.count),
        parameter_squares_(update_squares_ + units_.count) {}

  /// A whole parameter's update.
  void run() {
    P *const parameter = as<P>(call_.writes[0]), *const row_variance = as<P>(call_.writes[1]);
    if (matrices_.factored) {
      P* const column_variance = as<P>(call_.writes[2]);
      const auto rows = static_cast<double>(matrices_.rows), columns = static_cast<double>(matrices_.columns);
      for (int64_t m = 0; m < matrices_.count; ++m) {
        P *const of_rows = row_variance + m * matrices_.rows, *const of_columns = column_variance + m * matrices_.columns;
        sum_squares(
            m, [&](int64_t r, double sum) { of_rows[r] = moved(of_rows[r], sum / columns); },
            [&](int64_t c, double sum) { of_columns[c] = moved(of_columns[c], sum / rows); });
        mean_variance_[m] = mean_of(of_rows, matrices_.rows);
      }
      use_variances(row_variance, column_variance);
    } else {
      move_variance(row_variance);
    }
    measure_parameter(parameter);
    measure_update();
    step(static_cast<double>(call_.writes[0].elements()), sum_of(parameter_squares_), sum_of(update_squares_));
  }

  // --- of a piece

  void sums() {
    const PieceParts piece(call_.in[0].shape, *call_.attrs);
    double* const out = as<double>(call_.out[0]);
    const int64_t terms = call_.out[0].elements();
    std::fill_n(out, terms, 0.0);
    if (matrices_.factored && matrices_.count > 0) {
      double *const of_rows = place_sums(), *const of_columns = of_rows + matrices_.rows;
      sum_squares(
          0, [&](int64_t r, double sum) { of_rows[r] = sum; }, [&](int64_t c, double sum) { of_columns[c] = sum; });
      each_place(piece, true, [&](int64_t whole, int64_t own) { out[whole] = of_rows[own]; });
      each_place(piece, false, [&](int64_t whole, int64_t own) { out[piece.whole_rows() + whole] = of_columns[own]; });
    }
    measure_parameter(as<const P>(call_.in[4]));
    out[terms - 1] = sum_of(parameter_squares_);
  }

  void size() {
    if (matrices_.factored) {
      const PieceParts piece(call_.in[0].shape, *call_.attrs);
      const auto *const row_sums = as<const double>(call_.in[4]), *const column_sums = row_sums + piece.whole_rows();
      const auto move = [&](const Operand& state, const double* of, int64_t others) {
        P* const variance = as<P>(state);
        for (int64_t i = 0; i < state.elements(); ++i) variance[i] = moved(variance[i], of[i] / static_cast<double>(others));
      };
      move(call_.writes[0], row_sums, piece.whole_columns());
      move(call_.writes[1], column_sums, piece.whole_rows());
    } else {
      move_variance(as<P>(call_.writes[0]));
    }
    use_variances_of_piece(0);
    measure_update();
    as<double>(call_.out[0])[0] = sum_of(update_squares_);
  }

  void step() {
    use_variances_of_piece(1);
    step(static_cast<double>(call_.writes[0].elements() * call_.attrs->integer("ranks")),
         as<const double>(call_.in[4])[call_.in[4].elements() - 1], as<const double>(call_.in[5])[0]);
  }

 private:
  /// From the sums of squares of all `elements` of the parameter and of the update.
  void step(double elements, double parameter_squares, double update_squares) {
    const double rho = std::min(inputs_.rate, 1 / std::sqrt(inputs_.number));
    const double alpha = std::max(call_.attrs->real("epsilon2"), std::sqrt(parameter_squares / elements)) * rho;
    const double step = alpha / std::max(1.0, std::sqrt(update_squares / elements) / call_.attrs->real("clip_threshold"));
    const B by(static_cast<P>(step));
    const B shrink(static_cast<P>(static_cast<P>(step) > 0 ? inputs_.rate * call_.attrs->real("weight_decay") / step : 0));
    P* const parameter = as<P>(call_.writes[0]);
    each_unit([&](int64_t unit, int64_t begin, int64_t n) {
      each_update(unit, begin, n, [&](int64_t i, int64_t count, const B& update) {
        store_part(parameter + i, decayed(load_part(parameter + i, count), shrink, by, update), count);
      });
    });
  }

  double sum_of(const double* by_unit) const {
    double sum = 0;
    for (int64_t i = 0; i < units_.count; ++i) sum += by_unit[i];
    return sum;
  }

  double mean_of(const P* variance, int64_t n) const {
    double sum = 0;
    for (int64_t r = 0; r < n; ++r) sum += static_cast<double>(variance[r]);
    return std::max(sum / static_cast<double>(n), epsilon_);
  }

  void use_variances(const P* row, const P* column) {
    row_ = row;
    column_ = column;
  }

  /// take(index in the whole, index in the piece) for each row, or column, of the piece.
  template <class Take>
  void each_place(const PieceParts& piece, bool of_rows, const Take& take) const {
    const auto each = [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      for (int64_t i = 0; i < count; ++i) take(in_whole + i, in_piece + i);
    };
    of_rows == piece.cuts_rows ? piece.each_part(piece.rank, each) : each(0, 0, of_rows ? piece.rows : piece.columns);
  }

  double* place_sums() const { return parameter_squares_ + units_.count; }

  /// Those of the piece's rows and columns, to the workspace, from the slots of the whole's.
  void use_variances_of_piece(size_t first_slot) {
    if (!matrices_.factored) return use_variances(as<P>(call_.writes[first_slot]), nullptr);
    const PieceParts piece(call_.in[0].shape, *call_.attrs);
    const P *const row = as<const P>(call_.writes[first_slot]), *const column = as<const P>(call_.writes[first_slot + 1]);
    P *const own_row = reinterpret_cast<P*>(place_sums()), *const own_column = own_row + piece.rows;
    each_place(piece, true, [&](int64_t whole, int64_t own) { own_row[own] = row[whole]; });
    each_place(piece, false, [&](int64_t whole, int64_t own) { own_column[own] = column[whole]; });
    if (matrices_.count > 0) mean_variance_[0] = mean_of(row, piece.whole_rows());
    use_variances(own_row, own_column);
  }

  template <class Body>
  void each_unit(const Body& body) {
    call_.workers->run_range(units_.count, rows_per_task(units_.of), [&](int64_t first, int64_t end) {
      for (int64_t unit = first; unit < end; ++unit)
        body(unit, unit * units_.of, std::min(units_.of, call_.in[0].elements() - unit * units_.of));
    });
  }

  /// body(element, count, gradients) for `n` elements from `begin` on.
  template <class Body>
  void each_gradient(int64_t begin, int64_t n, const Body& body) {
    constexpr int64_t kBlock = 1024;
    alignas(64) P room[kBlock];
    for (int64_t from = begin; from < begin + n; from += kBlock) {
      const int64_t length = std::min(kBlock, begin + n - from);
      const P* const gradient = gradient_of(call_.in[0], from, length, room);
      each_vector<P>(length,
                     [&](int64_t i, int64_t count) { body(from + i, count, inputs_.true_gradient(load_part(gradient + i, count))); });
    }
  }

  /// Scales the squares down, since sums of the largest ones would overflow.
  static constexpr P kDown = P(0x1p-16);

  /// take_row(r, sum) and take_column(c, sum) with the sums of squares of a matrix's gradient.
  template <class TakeRow, class TakeColumn>
  void sum_squares(int64_t matrix, const TakeRow& take_row, const TakeColumn& take_column) {
    const int64_t rows = matrices_.rows, columns = matrices_.columns, first = matrix * rows;
    call_.workers->run_range(rows, kRowBlock, [&](int64_t begin, int64_t end) {
      P* const sums = partial_ + begin / kRowBlock * columns;
      std::fill(sums, sums + columns, P(0));
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = (first + r) * columns;
        double squares = 0;
        B lanes(P(0));
        each_gradient(at, columns, [&](int64_t i, int64_t count, const B& g) {
          const B square = keep_first(g * (g * B(kDown)), count);
          lanes += square;
          store_part(sums + (i - at), load_part(sums + (i - at), count) + square, count);
          if ((i - at) % kSumBlock >= kSumBlock - kLanes<P>) squares += static_cast<double>(add_lanes<P>(lanes)), lanes = B(P(0));
        });
        squares += static_cast<double>(add_lanes<P>(lanes));
        take_row(r, squares / kDown);
      }
    });
    call_.workers->run_range(columns, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for (int64_t block = 0; block < row_blocks(rows); ++block) sum += static_cast<double>(partial_[block * columns + c]);
        take_column(c, sum / kDown);
      }
    });
  }

  void move_variance(P* variance) {
    // torch.lerp's two forms: at the first update v becomes exactly g^2, however small it is compared with v.
    const bool far = take_ >= 0.5;
    const B take(static_cast<P>(take_)), rest(static_cast<P>(take_ - 1));
    each_unit([&](int64_t, int64_t begin, int64_t n) {
      each_gradient(begin, n, [&](int64_t i, int64_t count, const B& g) {
        const B v = load_part(variance + i, count);
        const B square = g * g;
        store_part(variance + i, far ? fma(rest, square - v, square) : fma(take, square - v, v), count);
      });
    });
    use_variances(variance, nullptr);
  }

  P moved(P from, double to) const { return static_cast<P>(static_cast<double>(from) + take_ * (to - static_cast<double>(from))); }

  /// Zeroes the lanes after the first `count`, so that a sum over all lanes is a sum over these.
  static B keep_first(const B& v, int64_t count) {
    if (count == kLanes<P>) return v;
    alignas(64) P image[kLanes<P>] = {};
    store_part(image, v, count);
    return B::load_aligned(image);
  }

  /// body(element, count, u) over a unit of work.
  template <class Body>
  void each_update(int64_t unit, int64_t begin, int64_t n, const Body& body) {
    const B least(least_);
    if (!matrices_.factored) {
      return each_gradient(begin, n, [&](int64_t i, int64_t count, const B& g) {
        body(i, count, g / xsimd::sqrt(xsimd::max(load_part(row_ + i, count, P(1)), least)));
      });
    }
    const int64_t matrix = unit / matrices_.rows;
    const P* const column = column_ + matrix * matrices_.columns;
    const B scale(static_cast<P>(static_cast<double>(row_[unit]) / mean_variance_[matrix]));
    each_gradient(begin, n, [&](int64_t i, int64_t count, const B& g) {
      body(i, count, g / xsimd::sqrt(xsimd::max(load_part(column + (i - begin), count, P(1)) * scale, least)));
    });
  }

  void measure_parameter(const P* parameter) {
    each_unit([&](int64_t unit, int64_t begin, int64_t n) {
      double sum = 0;
      each_vector<P>(n, [&](int64_t i, int64_t count) {
        const B p = load_part(parameter + begin + i, count);
        sum += static_cast<double>(add_lanes<P>(p * p));
      });
      parameter_squares_[unit] = std::isfinite(sum) ? sum : squares_in_double(parameter + begin, n);
    });
  }

  void measure_update() {
    each_unit([&](int64_t unit, int64_t begin, int64_t n) {
      double sum = 0;
      each_update(unit, begin, n, [&](int64_t, int64_t count, const B& update) {
        const B u = keep_first(update, count);
        sum += static_cast<double>(add_lanes<P>(u * u));
      });
      update_squares_[unit] = sum;
    });
  }

  static double squares_in_double(const P* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return sum;
  }

  const Call& call_;
  UpdateInputs<P> inputs_;
  Matrices matrices_;
  WorkUnits units_;
  double epsilon_;
  P least_;  // variance
  double take_;
  P* partial_;
  double *mean_variance_, *update_squares_, *parameter_squares_;
  const P *row_ = nullptr, *column_ = nullptr;  // variances of rows, or of elements, and of columns
};

void run_adafactor(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("adafactor", call, [&](auto p) { Adafactor<decltype(p)>(call).run(); });
  write_copy(call);
}

void run_adafactor_sums(const Call& call) {
  with_parameter("adafactor_sums", call.in[4].dtype, call, [&](auto p) { Adafactor<decltype(p)>(call).sums(); });
}

void run_adafactor_size(const Call& call) {
  as<double>(call.out[0])[0] = 0;
  if (is_skipped(call)) return;
  with_parameter("adafactor_size", call, [&](auto p) { Adafactor<decltype(p)>(call).size(); });
}

void run_adafactor_step(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("adafactor_step", call, [&](auto p) { Adafactor<decltype(p)>(call).step(); });
  write_copy(call);
}

}  // namespace

const Kernel kernel_adafactor = {run_adafactor};
const Kernel kernel_adafactor_sums = {run_adafactor_sums};
const Kernel kernel_adafactor_size = {run_adafactor_size};
const Kernel kernel_adafactor_step = {run_adafactor_step};

}  // namespace st::cpu::ST_ISA
