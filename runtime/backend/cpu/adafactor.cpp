// torch.optim.Adafactor (Shazeer and Stern 2018); the formula is in reference/adafactor.cpp. Three passes: squares of the gradient by row
// and by column (column_sums.h), with |p|; the size of the update; the update. An element's update depends only on the gradient and on its
// row's and column's variance, so it is computed twice and not stored.
// Workspace: partial column sums [blocks of rows][columns]; then, in double, the mean of each matrix's row variances, and the sums of
// squares of each row, of the update and of the parameter.
#include "backend/cpu/adafactor_work.h"
#include "backend/cpu/column_sums.h"
#include "backend/cpu/optimizer_pass.h"

namespace st::cpu::ST_ISA {
namespace {

template <class P>
class Adafactor {
  using B = Batch<P>;

 public:
  explicit Adafactor(const Call& call)
      : call_(call),
        inputs_(call),
        matrices_(call.writes[0].shape),
        units_(matrices_),
        epsilon_(call.attrs->real("epsilon") > 0 ? call.attrs->real("epsilon") : std::numeric_limits<P>::epsilon()),
        least_(std::max(static_cast<P>(epsilon_ * epsilon_), std::numeric_limits<P>::min())),
        take_(std::pow(inputs_.number, call.attrs->real("beta2_decay"))),
        partial_(reinterpret_cast<P*>(call.workspace.data())),
        mean_variance_(reinterpret_cast<double*>(call.workspace.data() + partial_bytes(call.in[0].dtype, matrices_))),
        update_squares_(mean_variance_ + matrices_.count),
        parameter_squares_(update_squares_ + units_.count) {}

  void run() {
    if (matrices_.factored)
      for (int64_t m = 0; m < matrices_.count; ++m) move_factors(m);
    else
      move_variance();
    each_unit([&](int64_t unit, int64_t begin, int64_t n) { measure(unit, begin, n); });
    const auto elements = static_cast<double>(call_.writes[0].elements());
    const auto rms = [&](const double* squares) {
      double sum = 0;
      for (int64_t i = 0; i < units_.count; ++i) sum += squares[i];
      return std::sqrt(sum / elements);
    };
    const double rho = std::min(inputs_.rate, 1 / std::sqrt(inputs_.number));
    const double alpha = std::max(call_.attrs->real("epsilon2"), rms(parameter_squares_)) * rho;
    const double step = alpha / std::max(1.0, rms(update_squares_) / call_.attrs->real("clip_threshold"));
    const B by(static_cast<P>(step));
    const B shrink(static_cast<P>(static_cast<P>(step) > 0 ? inputs_.rate * call_.attrs->real("weight_decay") / step : 0));
    P* const parameter = call_.writes[0].as<P>();
    each_unit([&](int64_t unit, int64_t begin, int64_t n) {
      each_update(unit, begin, n, [&](int64_t i, int64_t count, const B& update) {
        store_part(parameter + i, decayed(load_part(parameter + i, count), shrink, by, update), count);
      });
    });
  }

 private:
  template <class Body>
  void each_unit(const Body& body) {
    call_.workers->run_range(units_.count, rows_per_task(units_.of), [&](int64_t first, int64_t end) {
      for (int64_t unit = first; unit < end; ++unit)
        body(unit, unit * units_.of, std::min(units_.of, call_.writes[0].elements() - unit * units_.of));
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

  void move_factors(int64_t matrix) {
    const int64_t rows = matrices_.rows, columns = matrices_.columns, first = matrix * rows;
    P* const row_variance = call_.writes[1].template as<P>() + first;
    P* const column_variance = call_.writes[2].template as<P>() + matrix * columns;
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
        row_variance[r] = moved(row_variance[r], squares / (static_cast<double>(columns) * kDown));
      }
    });
    double sum_of_rows = 0;
    for (int64_t r = 0; r < rows; ++r) sum_of_rows += static_cast<double>(row_variance[r]);
    mean_variance_[matrix] = std::max(sum_of_rows / static_cast<double>(rows), epsilon_);
    call_.workers->run_range(columns, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for (int64_t block = 0; block < row_blocks(rows); ++block) sum += static_cast<double>(partial_[block * columns + c]);
        column_variance[c] = moved(column_variance[c], sum / (static_cast<double>(rows) * kDown));
      }
    });
  }

  void move_variance() {
    P* const variance = call_.writes[1].template as<P>();
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
      const P* const variance = call_.writes[1].template as<P>();
      return each_gradient(begin, n, [&](int64_t i, int64_t count, const B& g) {
        body(i, count, g / xsimd::sqrt(xsimd::max(load_part(variance + i, count, P(1)), least)));
      });
    }
    const int64_t matrix = unit / matrices_.rows;
    const P* const column = call_.writes[2].template as<P>() + matrix * matrices_.columns;
    const B scale(static_cast<P>(static_cast<double>(call_.writes[1].template as<P>()[unit]) / mean_variance_[matrix]));
    each_gradient(begin, n, [&](int64_t i, int64_t count, const B& g) {
      body(i, count, g / xsimd::sqrt(xsimd::max(load_part(column + (i - begin), count, P(1)) * scale, least)));
    });
  }

  void measure(int64_t unit, int64_t begin, int64_t n) {
    const P* const parameter = call_.writes[0].template as<P>();
    double updates = 0, parameters = 0;
    each_update(unit, begin, n, [&](int64_t i, int64_t count, const B& update) {
      const B p = load_part(parameter + i, count), u = keep_first(update, count);
      updates += static_cast<double>(add_lanes<P>(u * u));
      parameters += static_cast<double>(add_lanes<P>(p * p));
    });
    update_squares_[unit] = updates;
    parameter_squares_[unit] = std::isfinite(parameters) ? parameters : squares_in_double(parameter + begin, n);
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
};

void run_adafactor(const Call& call) {
  if (is_skipped(call) || call.writes[0].elements() == 0) return;
  with_parameter("adafactor", call, [&](auto p) { Adafactor<decltype(p)>(call).run(); });
  write_copy(call);
}

}  // namespace

const Kernel kernel_adafactor = {run_adafactor};

}  // namespace st::cpu::ST_ISA
