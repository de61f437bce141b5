#include "backend/cuda/muon.cuh"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cuda/enqueue.h"
#include "backend/cuda/float_squares.h"
#include "backend/cuda/muon_work.h"
#include "backend/cuda/update_types.h"
#include "backend/kernel_side.h"
#include "backend/piece_parts.h"
#include "base/error.h"
#include "gemm/problem.h"

namespace st::cuda {
namespace {

constexpr float kLinearTerm = 3.4445F, kCubicTerm = -4.7750F, kQuinticTerm = 2.0315F;

void enqueue_momentum(const KernelQueue& queue, const Call& call, const Operand& momentum, float* direction) {
  const double keep = call.attrs->real("momentum"), clip = call.attrs->real("clip_value");
  const MuonMomentum rule = {static_cast<float>(keep), static_cast<float>(1 - keep), call.attrs->flag("nesterov")};
  const Operand& gradient = call.in[0];
  const GradientType type = {gradient.dtype, most_of_gradient(clip)};
  launch(queue.stream, {blocks_for(momentum.elements(), kMuonVector), kBlock}, move_momentum, queue.faults, as<const uint8_t>(call.in[2]),
         rule, as<const void>(gradient), type, as<const float>(call.in[1]), as<float>(momentum), direction, momentum.elements());
}

bool is_wide(const MuonWork& work) { return work.rows <= work.columns; }

GemmProblem product_of(int64_t m, int64_t n, int64_t k, MatrixStrides a, MatrixStrides b) {
  GemmProblem made;
  made.m = m, made.n = n, made.k = k;
  made.a = a, made.b = b, made.c = {n, 1};
  return made;
}
GemmProblem gram_of_x(const MuonWork& work) {
  const MatrixStrides x{work.columns, 1}, turned{1, work.columns};
  return product_of(work.side(), work.side(), std::max(work.rows, work.columns), is_wide(work) ? x : turned, is_wide(work) ? turned : x);
}
GemmProblem polynomial_of_gram(const MuonWork& work) {
  const int64_t side = work.side();
  GemmProblem made = product_of(side, side, side, {side, 1}, {side, 1});
  made.alpha = kQuinticTerm, made.beta = kCubicTerm;
  return made;
}
/// From the left if X is wide, else from the right.
GemmProblem next_x(const MuonWork& work) {
  const MatrixStrides x{work.columns, 1}, square{work.side(), 1}, turned{1, work.side()};
  GemmProblem made = product_of(work.rows, work.columns, work.side(), is_wide(work) ? square : x, is_wide(work) ? x : turned);
  made.beta = kLinearTerm;
  return made;
}

/// X of a matrix, in the workspace, and its iteration.
class Orthogonal {
 public:
  Orthogonal(const KernelQueue& queue, const Call& call, const MuonWork& work)
      : queue_(queue),
        call_(call),
        work_(work),
        x_(pointer_to<float>(call.workspace)),
        y_(at(work.second())),
        gram_(at(work.gram())),
        polynomial_(at(work.polynomial())) {}

  float* x() const { return x_; }

  void run() {
    const int64_t n = work_.elements(), side = work_.side();
    auto* const sums = pointer_to<double>(call_.workspace + work_.sums());
    float* const scale = at(work_.scale());
    enqueue_float_squares(queue_.stream, x_, n, sums);
    const double least = std::max(call_.attrs->real("ns_epsilon"), kLeastEpsilon<float>);
    launch(queue_.stream, {1, kBlock}, set_scale, sums, square_chunks(n), least, scale);
    copy(x_, scale, x_, n);
    for (int64_t step = 0; step < call_.attrs->integer("ns_steps"); ++step) {
      multiply(gram_of_x(work_), x_, x_, gram_);
      copy(gram_, nullptr, polynomial_, side * side);
      multiply(polynomial_of_gram(work_), gram_, gram_, polynomial_);
      copy(x_, nullptr, y_, n);
      multiply(next_x(work_), is_wide(work_) ? polynomial_ : x_, is_wide(work_) ? x_ : polynomial_, y_);
      std::swap(x_, y_);
    }
  }

  /// Updates the parameter's rows from element `first` on.
  void step(int64_t x_first, int64_t x_lead, int64_t first, int64_t lead, int64_t rows, int64_t columns) const {
    const Operand &parameter = call_.writes[0], &last = call_.writes.back();
    const MuonRates rates = {call_.attrs->real("lr_scale"), call_.attrs->real("weight_decay"), ratio()};
    launch(queue_.stream, {blocks_for(rows * columns, 1), kBlock}, step_matrix, queue_.faults, as<const uint8_t>(call_.in[2]), rates,
           as<const double>(call_.in[3]), x_ + x_first, x_lead, as<float>(parameter), is_half(last.dtype) ? as<void>(last) : nullptr,
           last.dtype, lead, first, rows, columns);
  }

 private:
  float* at(int64_t bytes) const { return pointer_to<float>(call_.workspace + bytes); }
  void multiply(const GemmProblem& problem, const float* a, const float* b, float* c) const {
    enqueue_gemm(queue_, problem, a, b, c, at(work_.library()));
  }

  void copy(const float* from, const float* by, float* to, int64_t n) const {
    launch(queue_.stream, {blocks_for(n, kMuonVector), kBlock}, copy_scaled, from, by, to, n);
  }

  double ratio() const {
    const auto rows = static_cast<double>(work_.rows), columns = static_cast<double>(work_.columns);
    const bool matches = call_.attrs->word("adjust_lr") == "match_rms_adamw";
    return matches ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  }

  const KernelQueue& queue_;
  const Call& call_;
  MuonWork work_;
  float *x_, *y_, *gram_, *polynomial_;
};

void enqueue_whole(const KernelQueue& queue, const Call& call) {
  const Shape& shape = call.writes[0].shape;
  Orthogonal of(queue, call, {shape[0], shape[1]});
  enqueue_momentum(queue, call, call.writes[1], of.x());
  of.run();
  of.step(0, shape[1], 0, shape[1], shape[0], shape[1]);
}

/// take(first element of the whole, first of the piece, rows, columns) for each of a rank's parts, whose rows begin as far apart as those
/// of the whole and of the piece.
template <class Take>
void each_part(const PieceParts& piece, int64_t rank, const Take& take) {
  piece.each_part(rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
    if (piece.cuts_rows) return take(in_whole * piece.columns, in_piece * piece.columns, count, piece.columns);
    take(in_whole, in_piece, piece.rows, count);
  });
}

void enqueue_step_of_piece(const KernelQueue& queue, const Call& call) {
  const PieceParts piece(call.writes[0].shape, *call.attrs);
  const int64_t lead = piece.whole_columns();
  Orthogonal of(queue, call, {piece.whole_rows(), lead});
  for (int64_t rank = 0; rank < piece.ranks; ++rank) {
    const float* const directions = as<const float>(call.in[0]) + rank * call.writes[0].elements();
    each_part(piece, rank, [&](int64_t in_whole, int64_t in_piece, int64_t rows, int64_t columns) {
      launch(queue.stream, {blocks_for(rows * columns, 1), kBlock}, place_matrix, directions + in_piece, piece.columns, of.x() + in_whole,
             lead, rows, columns);
    });
  }
  of.run();
  each_part(piece, piece.rank, [&](int64_t in_whole, int64_t in_piece, int64_t rows, int64_t columns) {
    of.step(in_whole, lead, in_piece, piece.columns, rows, columns);
  });
}

}  // namespace

void enqueue_muon(const KernelQueue& queue, Op op, const Call& call) {
  check_update_types(op, call.writes[0].dtype, call.in[0].dtype);
  if (call.writes[0].elements() == 0) return;
  switch (op) {
    case Op::muon:
      return enqueue_whole(queue, call);
    case Op::muon_direction:
      return enqueue_momentum(queue, call, call.writes[0], as<float>(call.out[0]));
    case Op::muon_step:
      return enqueue_step_of_piece(queue, call);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no part of muon"));
  }
}

void choose_muon_products(ProductChoices& choices, Op op, const Call& call) {
  const Shape& shape = call.writes[0].shape;
  if (shape.elements() == 0) return;
  MuonWork work = {shape[0], shape[1]};
  if (op == Op::muon_step) {
    const PieceParts piece(shape, *call.attrs);
    work = {piece.whole_rows(), piece.whole_columns()};
  }
  for (const GemmProblem& problem : {gram_of_x(work), polynomial_of_gram(work), next_x(work)}) choose_gemm(choices, problem);
}

}  // namespace st::cuda
