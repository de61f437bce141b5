// Shape rules of arithmetic: elementwise ops, products, normalisation, attention, losses, the update. movement_rules.cpp has those of ops
// that move elements. Each returns the output types of given inputs or throws with the reason.
#include "ir/shape_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/cuts.h"
#include "ir/linear_places.h"
#include "ir/piece_update.h"
#include "ir/product_type.h"

namespace st::shape_rule {

// A rule has the name that ops.def gives it; a row with an unknown rule does not compile.
#define ST_OP(name, inputs, outputs, attrs, rule, ...) Outputs rule(const OpTypes& op);
#include "ir/ops.def"
#undef ST_OP

namespace {

using Rule = Outputs (*)(const OpTypes&);
constexpr std::array<Rule, kOps> kRules = {
#define ST_OP(name, inputs, outputs, attrs, rule, ...) &rule,
#include "ir/ops.def"
#undef ST_OP
};

// Ops that accept integers too.
bool takes_integers(Op op) {
  return op == Op::add || op == Op::sub || op == Op::mul || op == Op::minimum || op == Op::maximum || op == Op::compare || op == Op::where;
}

void check_numbers(const OpTypes& op, size_t a, size_t b) {
  const auto dtype = op.in[a].dtype;
  if (takes_integers(op.op))
    check(is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64, name(op), ": ", input_name(op, a),
          " must be floating, i32 or i64, got ", op.in[a], "; cast it first");
  else
    check_floating(op, a);
  check_same_dtype(op, a, b);
}

Shape broadcast_shapes(const OpTypes& op, size_t a, size_t b) {
  try {
    return st::broadcast(name(op), op.in[a].shape, op.in[b].shape);
  } catch (const Error&) {
    fail(Code::invalid_argument,
         text(name(op), ": shapes do not broadcast, ", input_name(op, a), " is ", op.in[a], ", ", input_name(op, b), " is ", op.in[b]));
  }
}

}  // namespace

// --- slots and constants

Outputs slot(const OpTypes& op) { fail(Code::internal, text(name(op), ": has no shape rule; its type is that of its slot")); }

Outputs nothing(const OpTypes&) { return {}; }

Outputs fill(const OpTypes& op) { return {typed(dtype_named(op.attrs.word("dtype")), Shape(op.attrs.ints("shape")))}; }

// --- elementwise

Outputs same(const OpTypes& op) {
  check_floating(op);
  return {typed(op.in[0].dtype, op.in[0].shape)};
}

Outputs same2(const OpTypes& op) {
  check_floating(op);
  check_same_type(op, 0, 1);
  if (op.attrs.has("axis")) axis_of(op, op.in[0].shape);
  return {typed(op.in[0].dtype, op.in[0].shape)};
}

Outputs axis(const OpTypes& op) {
  axis_of(op, op.in[0].shape);
  return same(op);
}

Outputs broadcast(const OpTypes& op) {
  check_numbers(op, 0, 1);
  return {typed(op.in[0].dtype, broadcast_shapes(op, 0, 1))};
}

Outputs compare(const OpTypes& op) {
  check_numbers(op, 0, 1);
  return {typed(DType::boolean, broadcast_shapes(op, 0, 1))};
}

Outputs where(const OpTypes& op) {
  check(op.in[0].dtype == DType::boolean, name(op), ": condition must be bool, got ", op.in[0], "; use compare or cast");
  check_numbers(op, 1, 2);
  const Shape chosen = broadcast_shapes(op, 1, 2);
  return {typed(op.in[1].dtype, st::broadcast("where: condition against a and b", op.in[0].shape, chosen))};
}

Outputs cast(const OpTypes& op) { return {typed(dtype_named(op.attrs.word("dtype")), op.in[0].shape)}; }

Outputs dropout(const OpTypes& op) {
  check_floating(op, 0);
  check_is(op, 1, DType::i64, {2});
  return {typed(op.in[0].dtype, op.in[0].shape)};
}

// --- matrix product

namespace {

void check_inner(const OpTypes& op, int64_t inner_a, int64_t inner_b) {
  check(inner_a == inner_b, name(op), ": inner dimensions differ, ", input_name(op, 0), " is ", op.in[0], ", ", input_name(op, 1), " is ",
        op.in[1]);
}

DType checked_product_type(const OpTypes& op) {
  const DType operands = op.in[0].dtype, type = product_type(op.attrs, operands);
  const bool is_wider = type == DType::f32 && (operands == DType::bf16 || operands == DType::f16);
  check(type == operands || is_wider, name(op), ": the result of ", operands, " operands cannot be ", type,
        "; it is their dtype, or f32 for bf16 and f16");
  return type;
}

}  // namespace

Outputs matmul(const OpTypes& op) {
  check_floating(op);
  check_rank(op, 0, 2);
  check_rank(op, 1, 2);
  const Shape &a = op.in[0].shape, &b = op.in[1].shape;
  const bool ta = op.attrs.flag("transpose_a"), tb = op.attrs.flag("transpose_b");
  const int32_t ra = a.rank(), rb = b.rank();
  check_inner(op, a[ta ? ra - 2 : ra - 1], b[tb ? rb - 1 : rb - 2]);
  Shape out = st::broadcast("matmul: leading dimensions", part(a, 0, ra - 2), part(b, 0, rb - 2));
  out.push_back(a[ta ? ra - 1 : ra - 2]);
  out.push_back(b[tb ? rb - 2 : rb - 1]);
  return {typed(checked_product_type(op), out)};
}

namespace {

/// The type of y for x [..., K] and a weight [K, N].
Type rows_times_weight(const OpTypes& op) {
  check_floating(op, 0);
  check_floating(op, 1);
  check_same_dtype(op, 0, 1);
  check_rank(op, 0, 1);
  const Shape& weight = op.in[1].shape;
  check(weight.rank() == 2, name(op), ": weight needs 2 dimensions, got ", op.in[1]);
  const bool transposed = op.attrs.flag("transpose_weight");
  check_inner(op, op.in[0].shape.last(), weight[transposed ? 1 : 0]);
  Shape out = op.in[0].shape;
  out[out.rank() - 1] = weight[transposed ? 0 : 1];
  return typed(checked_product_type(op), out);
}

}  // namespace

Outputs linear(const OpTypes& op) {
  const Type y = rows_times_weight(op);
  check_is(op, 2, y.dtype, {y.shape.last()});
  return {y};
}

Outputs fused_linear(const OpTypes& op) {
  const Type y = rows_times_weight(op);
  const LinearPlaces places(op.attrs);
  const bool active = op.attrs.word("activation") != "none";
  check(static_cast<size_t>(places.operands) == op.in.size(), name(op), ": the attributes ask for ", places.operands, " inputs, got ",
        op.in.size());
  check(active || (places.at < 0 && places.pre_activation < 0), name(op), ": backward and pre_activation need an activation");
  check(places.at < 0 || places.pre_activation < 0, name(op), ": backward and pre_activation exclude each other");
  const auto check_like = [&](int32_t place, const Shape& shape) {
    if (place >= 0) check_is(op, static_cast<size_t>(place), y.dtype, shape);
  };
  check_like(places.bias, {y.shape.last()});
  check_like(places.at, y.shape);
  check_like(places.residual, y.shape);
  if (places.packed >= 0) {
    const Type& packed = op.in[static_cast<size_t>(places.packed)];
    check(packed.dtype == DType::u8 && packed.shape.rank() == 1, name(op), ": a packed weight must be u8 with one dimension, got ", packed);
  }
  Outputs out = {y};
  if (places.pre_activation >= 0) out.push_back(y);
  if (places.column_sums >= 0) out.push_back(typed(y.dtype, {y.shape.last()}));
  return out;
}

Outputs pack(const OpTypes& op) {
  check_floating(op);
  check(op.in[0].shape.rank() == 2, name(op), ": weight needs 2 dimensions, got ", op.in[0]);
  checked_product_type(op);
  check(op.attrs.integer("rows") >= 0, name(op), ": rows must not be negative, got ", op.attrs.integer("rows"));
  return {};
}

// --- normalisation

namespace {

// Checks of both norms: x [..., C], gamma (and beta) [C] of x's type or the statistics'. Returns the type of the row statistics.
Type check_norm(const OpTypes& op, size_t scales) {
  check_rank(op, 0, 1);
  check_floating(op, 0);
  const DType own = op.in[0].dtype, wide = statistic_of(own);
  for (size_t i = 1; i <= scales; ++i) check_is(op, i, op.in[1].dtype == wide ? wide : own, {op.in[0].shape.last()});
  return typed(wide, without_last(op.in[0].shape));
}

Type plain(const Type& type) { return typed(type.dtype, type.shape); }

}  // namespace

Outputs layer_norm(const OpTypes& op) {
  const Type statistic = check_norm(op, 2);
  return {plain(op.in[0]), statistic, statistic};
}

Outputs layer_norm_backward(const OpTypes& op) {
  const Type statistic = check_norm(op, 1);
  check_is(op, 2, statistic.dtype, statistic.shape);
  check_is(op, 3, statistic.dtype, statistic.shape);
  check_same_type(op, 0, 4);
  return {plain(op.in[0]), plain(op.in[1]), plain(op.in[1])};
}

Outputs rms_norm(const OpTypes& op) {
  const Type statistic = check_norm(op, 1);
  return {plain(op.in[0]), statistic};
}

Outputs rms_norm_backward(const OpTypes& op) {
  const Type statistic = check_norm(op, 1);
  check_is(op, 2, statistic.dtype, statistic.shape);
  check_same_type(op, 0, 3);
  return {plain(op.in[0]), plain(op.in[1])};
}

// --- attention

Outputs attention(const OpTypes& op) {
  for (size_t i = 0; i < 3; ++i) {
    check_floating(op, i);
    check_same_dtype(op, 0, i);
    check(op.in[i].shape.rank() == 4, name(op), ": ", input_name(op, i), " needs 4 dimensions [B, T, H, D], got ", op.in[i]);
  }
  const Shape &q = op.in[0].shape, &k = op.in[1].shape;
  check_same_type(op, 1, 2);
  check(q[0] == k[0] && q[3] == k[3], name(op), ": q and k differ in batch or head size, q is ", op.in[0], ", k is ", op.in[1]);
  check(q[2] >= 0 && k[2] > 0 && q[2] % k[2] == 0, name(op), ": the key heads must divide the query heads, q is ", op.in[0], ", k is ",
        op.in[1]);
  check(q[3] > 0, name(op), ": the head size D must be at least 1, q is ", op.in[0]);
  return {plain(op.in[0]), typed(statistic_of(op.in[0].dtype), {q[0], q[2], q[1]})};
}

Outputs attention_backward(const OpTypes& op) {
  const Type lse = attention(op)[1];
  check_same_type(op, 0, 3);
  check_is(op, 4, lse.dtype, lse.shape);
  check_same_type(op, 0, 5);
  return {plain(op.in[0]), plain(op.in[1]), plain(op.in[2])};
}

Outputs rope(const OpTypes& op) {
  const Shape& x = op.in[0].shape;
  check(x.rank() == 4 && x[3] >= 0 && x[3] % 2 == 0, "rope: x must be [B, T, H, D] with an even D, got ", op.in[0]);
  return same(op);
}

// --- losses

namespace {

const Type kScalar = {.dtype = DType::f64, .shape = {}, .layout = {}};

void check_cross_entropy(const OpTypes& op, size_t weights) {
  check_floating(op, 0);
  check_rank(op, 0, 1);
  check(op.in[0].shape.last() > 0, name(op), ": logits need at least one class in the last dimension, got ", op.in[0]);
  check_index(op, 1);
  const Shape rows = without_last(op.in[0].shape);
  check(op.in[1].shape == rows, name(op), ": targets must have the shape of logits' rows, logits is ", op.in[0], ", targets is ", op.in[1]);
  if (op.in.size() > weights) check_is(op, weights, op.in[0].dtype, rows);
}

void check_pair(const OpTypes& op, size_t weights) {
  check_floating(op, 0);
  check_same_type(op, 0, 1);
  if (op.in.size() > weights) check_same_type(op, 0, weights);
}

}  // namespace

Outputs cross_entropy(const OpTypes& op) {
  check_cross_entropy(op, 2);
  return {kScalar, kScalar, typed(statistic_of(op.in[0].dtype), op.in[1].shape)};
}

Outputs cross_entropy_backward(const OpTypes& op) {
  check_cross_entropy(op, 4);
  check_is(op, 2, statistic_of(op.in[0].dtype), op.in[1].shape);
  check_is(op, 3, DType::f64, {});
  return {plain(op.in[0])};
}

Outputs fused_cross_entropy(const OpTypes& op) {
  check_cross_entropy(op, 3);
  check_is(op, 0, DType::f32, op.in[0].shape);
  check_is(op, 2, DType::f64, {});
  const std::string& result = op.attrs.word("result");
  return {kScalar, kScalar, typed(result == "same" ? DType::f32 : dtype_named(result), op.in[0].shape)};
}

namespace {

/// The shape of logits' rows with a dimension before and one after.
Shape rows_between(int64_t before, const Shape& logits, int64_t after) {
  Shape shape = {before};
  for (int32_t i = 0; i + 1 < logits.rank(); ++i) shape.push_back(logits[i]);
  shape.push_back(after);
  return shape;
}

void check_vocabulary(const OpTypes& op, size_t weights) {
  check_cross_entropy(op, weights);
  const int64_t first = op.attrs.integer("first"), classes = op.attrs.integer("classes"), columns = op.in[0].shape.last();
  check(first >= 0 && first <= classes - columns, name(op), ": the logits' columns must be some of the classes 0..", classes - 1, ", got ",
        columns, " columns from ", first);
}

Shape softmax_shape(const OpTypes& op) {
  Shape shape = without_last(op.in[0].shape);
  shape.push_back(2);
  return shape;
}

}  // namespace

Outputs vocabulary_terms(const OpTypes& op) {
  check_vocabulary(op, 2);
  return {typed(DType::f64, rows_between(1, op.in[0].shape, 4))};
}

Outputs vocabulary_cross_entropy(const OpTypes& op) {
  check_vocabulary(op, 3);
  const Shape& terms = op.in[2].shape;
  check(terms.rank() > 0 && terms[0] > 0, name(op), ": terms must have one row of terms per rank in its first dimension, got ", op.in[2]);
  check_is(op, 2, DType::f64, rows_between(terms[0], op.in[0].shape, 4));
  return {kScalar, kScalar, typed(statistic_of(op.in[0].dtype), op.in[1].shape), typed(DType::f64, softmax_shape(op))};
}

Outputs vocabulary_cross_entropy_backward(const OpTypes& op) {
  check_vocabulary(op, 4);
  check_is(op, 2, DType::f64, softmax_shape(op));
  check_is(op, 3, DType::f64, {});
  return {plain(op.in[0])};
}

Outputs pair_loss(const OpTypes& op) {
  check_pair(op, 2);
  return {kScalar, kScalar};
}

Outputs pair_loss_backward(const OpTypes& op) {
  check_pair(op, 3);
  check_is(op, 2, DType::f64, {});
  return {plain(op.in[0])};
}

// --- the update section

Outputs gradient_norm(const OpTypes& op) {
  for (size_t i = 0; i < op.in.size(); ++i) check_floating(op, i);
  return {kScalar, typed(DType::boolean, {})};
}

Outputs gradient_squares(const OpTypes& op) {
  int64_t blocks = 0;
  for (size_t i = 0; i < op.in.size(); ++i) {
    check_floating(op, i);
    check(!op.in[i].shape.is_symbolic(), name(op), ": a gradient's shape must not depend on the batch, got ", op.in[i]);
    blocks += norm_blocks(op.in[i].shape.elements());
  }
  return {typed(DType::f64, {blocks})};
}

Outputs norm_of_squares(const OpTypes& op) {
  check(op.in[0].dtype == DType::f64 && op.in[0].shape.rank() == 1, name(op), ": squares must be f64 with one dimension, got ", op.in[0]);
  const Ints& tensors = op.attrs.ints("tensors");
  check(tensors.size() % 2 == 0, name(op), ": tensors must have two numbers per tensor, first block and number of blocks, got ",
        tensors.size(), " numbers");
  for (size_t i = 0; i < tensors.size(); i += 2)
    check(tensors[i] >= 0 && tensors[i + 1] >= 0 && tensors[i] <= op.in[0].shape[0] - tensors[i + 1], name(op), ": ", tensors[i + 1],
          " blocks from ", tensors[i], " exceed ", op.in[0]);
  return {kScalar, typed(DType::boolean, {})};
}

Outputs tensor_squares(const OpTypes& op) {
  norm_of_squares(op);  // checks
  return {typed(DType::f64, {std::ssize(op.attrs.ints("tensors")) / 2})};
}

Outputs step_factor(const OpTypes& op) {
  check_is(op, 0, DType::f64, {});
  check_is(op, 1, DType::boolean, {});
  check_is(op, 2, DType::f64, {});
  return {typed(DType::f32, {}), kScalar, typed(DType::boolean, {})};
}

Outputs optimizer(const OpTypes& op) {
  check_floating(op, 0);
  check_is(op, 1, DType::f32, {});
  check_is(op, 2, DType::boolean, {});
  check_is(op, 3, DType::f64, {2});
  return {};
}

// --- updates of pieces

namespace {

void check_update_scalars(const OpTypes& op) {
  check_is(op, 1, DType::f32, {});
  check_is(op, 2, DType::boolean, {});
  check_is(op, 3, DType::f64, {2});
}

/// `rows` times the piece's rows lie in the input.
void check_piece(const OpTypes& op, int32_t least_rank, int64_t rows) {
  check_floating(op, 0);
  const Shape& shape = op.in[0].shape;
  const int64_t dimension = op.attrs.integer("dimension"), rank = op.attrs.integer("rank"), ranks = op.attrs.integer("ranks");
  check(ranks > 0 && rank >= 0 && rank < ranks, name(op), ": rank must be one of ", ranks, ", got ", rank);
  check(!shape.is_symbolic() && shape.rank() >= least_rank && shape.rank() <= 2 && shape[0] % rows == 0, name(op), ": ", input_name(op, 0),
        " must be ", least_rank == 2 ? "a matrix" : "a vector or a matrix", ", got ", op.in[0]);
  check(dimension >= 0 && dimension < shape.rank(), name(op), ": dimension must be one of the ", shape.rank(), " of ", op.in[0], ", got ",
        dimension);
  const Ints& segments = op.attrs.ints("segments");
  int64_t sum = 0;
  for (const int64_t segment : segments) {
    check(segment >= 0 && segment % ranks == 0, name(op), ": a segment of ", segment, " is not a multiple of the ", ranks, " ranks");
    sum += segment / ranks;
  }
  const int64_t own = dimension == 0 ? shape[0] / rows : shape[1];
  check(sum == own, name(op), ": the parts of segments ", std::span<const int64_t>(segments), " are ", sum, ", dimension ", dimension,
        " of the piece is ", own);
}

Type sums_of(const OpTypes& op) {
  const Shape whole = whole_of(op.in[0].shape, op.attrs);
  return typed(DType::f64, {whole.rank() < 2 ? 1 : whole[0] + whole[1] + 1});
}

}  // namespace

Outputs muon_direction(const OpTypes& op) {
  check_piece(op, 2, 1);
  check_update_scalars(op);
  return {typed(statistic_of(op.in[0].dtype), op.in[0].shape)};
}

Outputs muon_step(const OpTypes& op) {
  check(op.attrs.integer("ranks") > 0, name(op), ": ranks must be at least 1, got ", op.attrs.integer("ranks"));
  check_piece(op, 2, op.attrs.integer("ranks"));
  check(op.in[0].dtype == statistic_of(op.in[0].dtype), name(op), ": directions must be f32 or f64, got ", op.in[0]);
  check_update_scalars(op);
  return {};
}

Outputs adafactor_sums(const OpTypes& op) {
  check_piece(op, 1, 1);
  check_update_scalars(op);
  check(op.in[4].dtype == statistic_of(op.in[0].dtype), name(op), ": the parameter must be ", statistic_of(op.in[0].dtype), ", got ",
        op.in[4]);
  check(op.in[4].shape == op.in[0].shape, name(op), ": the gradient is ", op.in[0], ", the parameter ", op.in[4]);
  return {sums_of(op)};
}

Outputs adafactor_size(const OpTypes& op) {
  check_piece(op, 1, 1);
  check_update_scalars(op);
  check_is(op, 4, DType::f64, sums_of(op).shape);
  return {typed(DType::f64, {1})};
}

Outputs adafactor_step(const OpTypes& op) {
  adafactor_size(op);  // checks
  check_is(op, 5, DType::f64, {1});
  return {};
}

Outputs average(const OpTypes& op) {
  check_floating(op, 0);
  check_is(op, 1, DType::boolean, {});
  check_is(op, 2, DType::f64, {2});
  return {};
}

}  // namespace st::shape_rule

namespace st {

std::vector<Type> infer_shapes(const OpTypes& op) {
  const auto& inputs = info_of(op.op).inputs;
  size_t least = inputs.size(), most = inputs.size();
  for (const auto& input : inputs) {
    if (input.optional || input.variadic) --least;
    if (input.variadic) most = SIZE_MAX;
  }
  check(op.in.size() >= least && op.in.size() <= most, name_of(op.op), ": needs ", least == most ? text(least) : text("at least ", least),
        " inputs, got ", op.in.size());
  shape_rule::Outputs out = shape_rule::kRules[static_cast<size_t>(op.op)](op);
  for (const Type& type : out)  // -n means n times the batch; INT64_MIN has no n
    check(std::ranges::find(type.shape, INT64_MIN) == type.shape.end(), name_of(op.op), ": the shape ", type, " is out of range");
  return out;
}

}  // namespace st
