#include "backend/cuda/adafactor.cuh"

#include <algorithm>
#include <limits>

#include "backend/cuda/adafactor_layout.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/float_squares.h"
#include "backend/cuda/update_types.h"
#include "backend/kernel_side.h"
#include "backend/piece_parts.h"
#include "base/error.h"

namespace st::cuda {
namespace {

AdafactorAttrs attrs_of(const Attrs& attrs) {
  AdafactorAttrs of{};
  const double epsilon = attrs.real("epsilon");
  of.epsilon = epsilon > 0 ? epsilon : std::numeric_limits<float>::epsilon();
  of.least = std::max(static_cast<float>(of.epsilon * of.epsilon), std::numeric_limits<float>::min());
  of.epsilon2 = attrs.real("epsilon2");
  of.clip_threshold = attrs.real("clip_threshold");
  of.weight_decay = attrs.real("weight_decay");
  of.lr_scale = attrs.real("lr_scale");
  of.beta2_decay = attrs.real("beta2_decay");
  return of;
}

/// The launches of an update of a parameter or a piece of one.
class Adafactor {
 public:
  Adafactor(const KernelQueue& queue, const Call& call, const AdafactorLayout& layout)
      : queue_(queue),
        call_(call),
        layout_(layout),
        attrs_(attrs_of(*call.attrs)),
        type_{call.in[0].dtype, most_of_gradient(call.attrs->real("clip_value"))},
        gradient_(as<const void>(call.in[0])),
        factor_(as<const float>(call.in[1])),
        skip_(as<const uint8_t>(call.in[2])),
        rates_(as<const double>(call.in[3])),
        numbers_(pointer_to<AdafactorNumbers>(call.workspace)) {}

  void whole() {
    float *const parameter = as<float>(call_.writes[0]), *const row = as<float>(call_.writes[1]);
    set_take_of_step();
    if (layout_.factored) {
      float* const column = as<float>(call_.writes[2]);
      square();
      move(row_sums(), tiles().across, tiles().rows, tiles().columns, row);
      move(column_sums(), tiles().down, tiles().columns, tiles().rows, column);
      scale(row, tiles().matrices, tiles().rows);
      variances_ = {{scales(), column}};
    } else {
      move_own(row);
    }
    measure();
    enqueue_float_squares(queue_.stream, parameter, tiles().elements(), parameter_sums());
    step(tiles().elements(), parameter_sums(), square_chunks(tiles().elements()), update_sums(), tiles().tiles());
  }

  // --- of a piece

  void sums() {
    const PieceParts piece(call_.in[0].shape, *call_.attrs);
    auto* const out = as<double>(call_.out[0]);
    const int64_t terms = call_.out[0].elements();
    if (layout_.factored) {
      launch(queue_.stream, {blocks_for(terms, 1), kBlock}, clear_sums, out, terms);
      square();
      const auto place = [&](const double* partial, int64_t pieces, int64_t lines, double* to) {
        return [=, this](int64_t in_whole, int64_t in_piece, int64_t count) {
          if (tiles().matrices > 0)
            launch(queue_.stream, {blocks_of_lines(count), kBlock}, place_lines, partial, pieces, lines, in_piece, count, to + in_whole);
        };
      };
      each_line(piece, true, place(row_sums(), tiles().across, tiles().rows, out));
      each_line(piece, false, place(column_sums(), tiles().down, tiles().columns, out + piece.whole_rows()));
    }
    enqueue_float_squares(queue_.stream, as<const float>(call_.in[4]), tiles().elements(), parameter_sums());
    launch(queue_.stream, {1, kBlock}, add_sums, queue_.faults, nullptr, parameter_sums(), square_chunks(tiles().elements()),
           out + terms - 1);
  }

  void size() {
    set_take_of_step();
    if (layout_.factored) {
      const PieceParts piece(call_.in[0].shape, *call_.attrs);
      const auto* const of_all = as<const double>(call_.in[4]);
      const auto move_to = [&](const Operand& state, const double* from, int64_t others) {
        launch(queue_.stream, {blocks_for(state.elements(), 1), kBlock}, move_to_sums, queue_.faults, skip_, numbers_, from,
               state.elements(), static_cast<double>(others), as<float>(state));
      };
      move_to(call_.writes[0], of_all, piece.whole_columns());
      move_to(call_.writes[1], of_all + piece.whole_rows(), piece.whole_rows());
      use_variances_of_piece(piece, 0);
    } else {
      move_own(as<float>(call_.writes[0]));
    }
    measure();
    launch(queue_.stream, {1, kBlock}, add_sums, queue_.faults, skip_, update_sums(), tiles().tiles(), as<double>(call_.out[0]));
  }

  void step_of_piece() {
    const PieceParts piece(call_.in[0].shape, *call_.attrs);
    layout_.factored ? use_variances_of_piece(piece, 1) : use_own(as<const float>(call_.writes[1]));
    step(tiles().elements() * piece.ranks, as<const double>(call_.in[4]) + call_.in[4].elements() - 1, 1, as<const double>(call_.in[5]), 1);
  }

 private:
  static int64_t blocks_of_lines(int64_t lines) { return (lines + kLanes - 1) / kLanes; }

  const MatrixTiles& tiles() const { return layout_.tiles; }
  double* sums_at(int64_t bytes) const { return pointer_to<double>(call_.workspace + bytes); }
  double* row_sums() const { return sums_at(layout_.row_sums()); }
  double* column_sums() const { return sums_at(layout_.column_sums()); }
  double* update_sums() const { return sums_at(layout_.update_sums()); }
  double* parameter_sums() const { return sums_at(layout_.parameter_sums()); }
  float* scales() const { return pointer_to<float>(call_.workspace + layout_.scales()); }

  void set_take_of_step() { launch(queue_.stream, {1, 1}, set_take, attrs_, rates_, numbers_); }

  void square() {
    launch(queue_.stream, {tiles().tiles(), kBlock}, square_gradient, gradient_, type_, factor_, tiles(), row_sums(), column_sums());
  }

  void move(const double* partial, int64_t pieces, int64_t lines, int64_t others, float* variance) {
    launch(queue_.stream, {tiles().matrices * blocks_of_lines(lines), kBlock}, move_lines, queue_.faults, skip_, numbers_, partial, pieces,
           lines, static_cast<double>(others), variance);
  }

  /// The variances of a vector, one for each element.
  void use_own(const float* variance) { variances_ = {{variance, nullptr}}; }
  void move_own(float* variance) {
    launch(queue_.stream, {blocks_for(tiles().elements(), 1), kBlock}, move_elements, queue_.faults, skip_, numbers_, gradient_, type_,
           factor_, variance, tiles().elements());
    use_own(variance);
  }

  void scale(const float* variance, int64_t matrices, int64_t rows) {
    launch(queue_.stream, {matrices, kBlock}, scale_rows, variance, rows, attrs_.epsilon, scales());
  }

  /// take(first in the whole, first in the piece, how many) for the piece's rows, or columns.
  template <class Take>
  static void each_line(const PieceParts& piece, bool of_rows, const Take& take) {
    of_rows == piece.cuts_rows ? piece.each_part(piece.rank, take) : take(0, 0, of_rows ? piece.rows : piece.columns);
  }

  /// From the slots of the whole's. Lines that are cut are copied, so that those of the piece lie side by side.
  void use_variances_of_piece(const PieceParts& piece, size_t first_slot) {
    const float *const row = as<const float>(call_.writes[first_slot]), *const column = as<const float>(call_.writes[first_slot + 1]);
    scale(row, piece.whole_rows() > 0 ? 1 : 0, piece.whole_rows());
    float* const own = pointer_to<float>(call_.workspace + layout_.own());
    const float* const cut = piece.cuts_rows ? scales() : column;
    piece.each_part(piece.rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      launch(queue_.stream, {blocks_for(count, 1), kBlock}, copy_lines, cut + in_whole, own + in_piece, count);
    });
    variances_ = {{piece.cuts_rows ? own : scales(), piece.cuts_rows ? column : own}};
  }

  void measure() {
    launch(queue_.stream, {tiles().tiles(), kBlock}, measure_update, queue_.faults, skip_, gradient_, type_, factor_, tiles(), variances_,
           attrs_.least, update_sums());
  }

  void step(int64_t elements, const double* parameter_squares, int64_t count_of_parameter, const double* update_squares,
            int64_t count_of_update) {
    launch(queue_.stream, {1, kBlock}, set_step, attrs_, rates_, static_cast<double>(elements), parameter_squares, count_of_parameter,
           update_squares, count_of_update, numbers_);
    const Operand &parameter = call_.writes[0], &last = call_.writes.back();
    launch(queue_.stream, {tiles().tiles(), kBlock}, update_tiles, queue_.faults, skip_, numbers_, gradient_, type_, factor_, tiles(),
           variances_, attrs_.least, as<float>(parameter), is_half(last.dtype) ? as<void>(last) : nullptr, last.dtype);
  }

  const KernelQueue& queue_;
  const Call& call_;
  AdafactorLayout layout_;
  AdafactorAttrs attrs_;
  GradientType type_;
  const void* gradient_;
  const float* factor_;
  const uint8_t* skip_;
  const double* rates_;
  AdafactorNumbers* numbers_;
  VariancePlaces variances_{};
};

}  // namespace

void enqueue_adafactor(const KernelQueue& queue, Op op, const Call& call) {
  const Shape& shape = call.in[0].shape;
  check_update_types(op, op == Op::adafactor_sums ? call.in[4].dtype : call.writes[0].dtype, call.in[0].dtype);
  if (op == Op::adafactor) return Adafactor(queue, call, AdafactorLayout(shape)).whole();
  Adafactor of_piece(queue, call, AdafactorLayout(shape, PieceParts(shape, *call.attrs).whole_rows()));
  switch (op) {
    case Op::adafactor_sums:
      return of_piece.sums();
    case Op::adafactor_size:
      return of_piece.size();
    case Op::adafactor_step:
      return of_piece.step_of_piece();
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no part of adafactor"));
  }
}

}  // namespace st::cuda
