// Layout rules: an op's output layouts from its input layouts, for one axis of the mesh. A rule accepts only if each rank's kernel computes
// its own shard of the result from its own shards of the inputs. It refuses everything else: a pass must add a collective first.
#include <algorithm>
#include <array>

#include "ir/cuts.h"
#include "ir/layout_case.h"
#include "ir/linear_places.h"
#include "ir/shape_rules.h"

namespace st::layout_rule {

// A rule has the name that ops.def gives it; a row with an unknown rule does not compile. Those of losses and of collectives are in
// loss_layouts.cpp and collective_layouts.cpp.
#define ST_OP(name, inputs, outputs, attrs, shape_rule, layout_rule, ...) Layouts layout_rule(const Case& on);
#include "ir/ops.def"
#undef ST_OP

namespace {

// The operand's layout in the output's dimension numbers: broadcasting aligns dimensions at the right.
AxisLayout aligned(const Case& on, size_t input) {
  AxisLayout layout = on.in(input);
  if (layout.kind == Kind::sharded) layout.where += on.out[0].shape.rank() - on.rank(input);
  return layout;
}

// A replicated operand goes with a sharded one only if it broadcasts along that dimension: missing there, or of size 1.
bool stretches(const Case& on, size_t input, int32_t dimension) {
  const int32_t own = dimension - (on.out[0].shape.rank() - on.rank(input));
  return own < 0 || on.shape(input)[own] == 1;
}

bool is_scalar(const Shape& shape) {
  return std::ranges::all_of(shape, [](int64_t dim) { return dim == 1; });
}

}  // namespace

// --- slots and constants

Layouts slot(const Case& on) { refuse(on, "a load takes its layout from its slot"); }

Layouts any(const Case& on) { return every_output(on, kReplicated); }

Layouts replicate(const Case& on) {
  for (size_t i = 0; i < on.inputs(); ++i) need_replicated(on, i);
  return every_output(on, kReplicated);
}

// --- elementwise

Layouts elementwise(const Case& on) {
  AxisLayout found = kReplicated;
  for (size_t i = 0; i < on.inputs(); ++i) {
    if (on.is_partial(i)) refuse(on, kReduceFirst);
    if (found.kind == Kind::replicated) found = aligned(on, i);
  }
  if (found.kind == Kind::replicated) return every_output(on, found);
  for (size_t i = 0; i < on.inputs(); ++i) {
    if (aligned(on, i) == found) continue;
    const bool fits = found.kind == Kind::flat ? is_scalar(on.shape(i)) : stretches(on, i, found.where);
    if (!on.is_replicated(i) || !fits) refuse(on, "operands must have the same layout; gather one, or slice the other");
  }
  return every_output(on, found);
}

Layouts linear2(const Case& on) {
  if (on.all(Kind::partial)) return every_output(on, kPartial);
  if (on.is_partial(0) || on.is_partial(1))
    refuse(on, "the operand that is not partial would count once per rank; sum the partial one over the ranks first");
  return elementwise(on);
}

Layouts product(const Case& on) {
  for (const size_t i : {size_t{0}, size_t{1}})
    if (on.is_partial(i) && on.is_replicated(1 - i)) return every_output(on, kPartial);
  return elementwise(on);  // refuses partial times partial and partial times sharded
}

Layouts quotient(const Case& on) {
  if (on.is_partial(0) && on.is_replicated(1)) return every_output(on, kPartial);
  return elementwise(on);
}

Layouts scaled(const Case& on) {
  if (!on.is_partial(0)) return elementwise(on);
  if (on.op.op == Op::affine && on.op.attrs.real("shift") != 0) refuse(on, "the shift would count once per rank; sum over the ranks first");
  if (on.op.op == Op::cast && !is_floating(on.out[0].dtype)) refuse(on, kReduceFirst);
  return every_output(on, kPartial);
}

// The mask depends on (sample, element in the sample): if samples were cut, every rank would use the mask of their first elements.
Layouts dropout(const Case& on) {
  need_replicated(on, 1);
  if (on.is_partial(0)) refuse(on, kReduceFirst);
  if (!on.is_replicated(0) && !(on.in(0) == sharded(0))) refuse(on, "only whole samples, dimension 0, may be cut");
  return every_output(on, on.in(0));
}

// --- matrix product

namespace {

enum class GemmAxis { batch, rows, inner, columns };  // rows: M of a; columns: N of b; inner: K of both

struct Cut {
  GemmAxis part;
  int32_t out;  // the output's dimension; inner: -1
};

bool has_weight(const Case& on) { return on.op.op != Op::matmul; }  // x of any rank and a 2-D weight

Cut cut_of_a(const Case& on) {
  const int32_t rank = on.rank(0), d = on.in(0).where, out = on.out[0].shape.rank();
  const bool transposed = on.op.op == Op::matmul && on.op.attrs.flag("transpose_a");
  if (has_weight(on)) return d == rank - 1 ? Cut{GemmAxis::inner, -1} : Cut{GemmAxis::rows, d};
  if (d < rank - 2) return {GemmAxis::batch, d + out - rank};
  return d == (transposed ? rank - 2 : rank - 1) ? Cut{GemmAxis::inner, -1} : Cut{GemmAxis::rows, out - 2};
}

Cut cut_of_b(const Case& on) {
  const int32_t rank = on.rank(1), d = on.in(1).where, out = on.out[0].shape.rank();
  const bool transposed = on.op.attrs.flag(has_weight(on) ? "transpose_weight" : "transpose_b");
  if (d < rank - 2) return {GemmAxis::batch, d + out - rank};
  return d == (transposed ? rank - 1 : rank - 2) ? Cut{GemmAxis::inner, -1} : Cut{GemmAxis::columns, out - 1};
}

AxisLayout product_of(const Case& on) {
  if (on.is(0, Kind::flat) || on.is(1, Kind::flat)) refuse(on, kGatherFirst);
  if (on.is_partial(0) && on.is_replicated(1)) return kPartial;
  if (on.is_partial(1) && on.is_replicated(0)) return kPartial;
  if (on.is_partial(0) || on.is_partial(1)) refuse(on, kReduceFirst);
  if (on.is_replicated(0) && on.is_replicated(1)) return kReplicated;
  if (on.is_sharded(0) && on.is_sharded(1)) {
    const Cut a = cut_of_a(on), b = cut_of_b(on);
    const bool is_alike = on.in(0).grain == on.in(1).grain;
    if (a.part == GemmAxis::inner && b.part == GemmAxis::inner && is_alike) return kPartial;
    if (a.part == GemmAxis::batch && b.part == GemmAxis::batch && a.out == b.out) return sharded(a.out);
    refuse(on, "both operands are cut, but not along the same dimension");
  }
  const size_t whole = on.is_sharded(0) ? 1 : 0;
  const Cut cut = whole == 1 ? cut_of_a(on) : cut_of_b(on);
  if (cut.part == GemmAxis::inner) refuse(on, "the inner dimension is cut in one operand only; cut it in both, or gather it");
  if (cut.part == GemmAxis::batch && !stretches(on, whole, cut.out)) refuse(on, "a leading dimension is cut in one operand only");
  return sharded(cut.out, on.in(1 - whole).grain);
}

void check_bias(const Case& on, size_t bias, const AxisLayout& out) {
  const bool columns_cut = out.kind == Kind::sharded && out.where == on.out[0].shape.rank() - 1 && on.is_sharded(1);
  if (columns_cut && !(on.in(bias) == sharded(0, out.grain))) refuse(on, "the bias must be sharded like the weight's columns");
  if (!columns_cut) need_replicated(on, bias);
}

}  // namespace

Layouts matmul(const Case& on) {
  const AxisLayout out = product_of(on);
  if (on.op.op != Op::linear) return {out};
  if (out.kind == Kind::partial) {
    if (!on.is_partial(2)) refuse(on, "the bias would count once per rank; use matmul, sum over the ranks, then add");
    return {out};
  }
  check_bias(on, 2, out);
  return {out};
}

// Every stage after the product needs complete sums, except the column sums, and a residual that is itself partial: each rank's term of a
// sum of two products.
Layouts fused_linear(const Case& on) {
  const LinearPlaces places(on.op.attrs);
  const AxisLayout out = product_of(on);
  const bool is_product =
      places.bias < 0 && places.at < 0 && places.column_sums < 0 && places.pre_activation < 0 && on.op.attrs.word("activation") == "none";
  const bool adds_a_whole = places.residual >= 0 && !on.is_partial(static_cast<size_t>(places.residual));
  if (out.kind == Kind::partial && (!is_product || adds_a_whole)) refuse(on, kReduceFirst);
  if (places.bias >= 0) check_bias(on, static_cast<size_t>(places.bias), out);
  for (const int32_t like_y : {places.at, places.residual})
    if (like_y >= 0 && !(on.in(static_cast<size_t>(like_y)) == out))
      refuse(on, "operands must have the same layout; gather one, or slice the other");
  if (places.packed >= 0) need_replicated(on, static_cast<size_t>(places.packed));
  Layouts layouts = every_output(on, out);
  if (places.column_sums >= 0 && out.kind == Kind::sharded) {
    const bool columns_cut = out.where == on.out[0].shape.rank() - 1;
    layouts[static_cast<size_t>(places.column_sums)] = columns_cut ? sharded(0, out.grain) : kPartial;
  }
  return layouts;
}

// --- rows: each row of an axis is one unit of work

Layouts rows(const Case& on) {
  const int32_t rank = on.rank(0);
  const int32_t axis = on.op.attrs.has("axis") ? shape_rule::axis_of(on.op, on.shape(0)) : rank - 1;
  const AxisLayout out = rows_of(on, axis);
  // Other operands: dy of a softmax has the layout of x; gamma and beta of a norm are replicated.
  const bool with_x = on.op.op == Op::softmax_backward || on.op.op == Op::log_softmax_backward;
  for (size_t i = 1; i < on.inputs(); ++i) with_x ? need_equal(on, 0, i) : need_replicated(on, i);
  return every_output(on, out);  // statistics have the same leading dimensions
}

Layouts rows2(const Case& on) {
  const AxisLayout out = rows_of(on, shape_rule::axis_of(on.op, on.shape(0)));
  need_equal(on, 0, 1);
  return every_output(on, out);
}

Layouts norm_backward(const Case& on) {  // x gamma statistics... dy -> dx, then the gradients of gamma and beta
  const AxisLayout x = rows_of(on, on.rank(0) - 1);
  need_replicated(on, 1);
  for (size_t i = 2; i < on.inputs(); ++i) need_equal(on, 0, i);
  Layouts out = every_output(on, x.kind == Kind::sharded ? kPartial : kReplicated);
  out[0] = x;
  return out;
}

// --- attention: samples and heads are independent, positions and the elements of a head are not

namespace {

// The layout of an operand of this shape: heads are dimension 2 of [B, T, H, D] but dimension 1 of the row statistics [B, H, T].
AxisLayout heads_or_samples(AxisLayout cut, const Shape& shape) {
  return cut.kind == Kind::sharded && cut.where == 2 && shape.rank() == 3 ? sharded(1) : cut;
}

}  // namespace

Layouts batched(const Case& on) {
  const AxisLayout cut = on.in(0);
  if (cut.kind == Kind::partial) refuse(on, kReduceFirst);
  if (cut.kind == Kind::flat || (cut.kind == Kind::sharded && cut.where != 0 && cut.where != 2))
    refuse(on, "only samples (dimension 0) or heads (dimension 2) may be cut");
  for (size_t i = 1; i < on.inputs(); ++i)
    if (!(on.in(i) == heads_or_samples(cut, on.shape(i)))) refuse(on, "all operands must have the same layout");
  Layouts out;
  for (const Type& type : on.out) out.push_back(heads_or_samples(cut, type.shape));
  return out;
}

// --- indexing

Layouts embedding(const Case& on) {  // weight [V, C], tokens [...]
  if (on.is_partial(1) || on.is(0, Kind::flat) || on.is(1, Kind::flat))
    refuse(on, "tokens must be replicated or sharded, weight must have whole rows");
  if (on.is_replicated(0)) return {on.in(1)};
  need_replicated(on, 1);
  if (on.is_partial(0)) return {kPartial};
  if (on.in(0).where == 0 && on.op.attrs.integer("classes") > 0) return {kPartial};  // zeros for the rows of other ranks
  if (on.in(0).where == 0) refuse(on, "a token's row may be on another rank; shard weight along dimension 1");
  return {sharded(on.out[0].shape.rank() - 1)};
}

Layouts weight_backward(const Case& on) {  // tokens [...], dy [..., C] -> dweight [rows, C]
  if (on.is_partial(0) || on.is(0, Kind::flat) || on.is(1, Kind::flat)) refuse(on, kGatherFirst);
  if (on.is_sharded(0)) {
    need_equal(on, 0, 1);
    return {kPartial};  // each rank sums its own tokens
  }
  const bool has_own_rows = on.axis == MeshAxis::tensor && on.op.op == Op::embedding_backward && on.op.attrs.integer("classes") > 0;
  if (has_own_rows) {
    need_replicated(on, 1);
    return {sharded(0)};
  }
  if (!on.is_sharded(1)) return {on.in(1)};
  if (on.in(1).where != on.rank(1) - 1) refuse(on, "tokens must be sharded like dy");
  return {sharded(1)};
}

// --- reductions and shapes

namespace {

bool is_reduced(const Case& on, int32_t dimension) {
  if (on.op.attrs.has("axis")) return shape_rule::axis_of(on.op, on.shape(0)) == dimension;
  const Ints& axes = on.op.attrs.ints("axes");
  const auto names = [&](int64_t axis) { return normalize_axis(name_of(on.op.op), axis, on.rank(0)) == dimension; };
  return axes.empty() || std::ranges::any_of(axes, names);
}

AxisLayout kept(const Case& on) {  // the output's layout if the sharded dimension is not reduced
  int32_t out = on.in(0).where;
  if (!on.op.attrs.flag("keep_dims"))
    for (int32_t i = 0; i < on.in(0).where; ++i) out -= is_reduced(on, i) ? 1 : 0;
  return sharded(out, on.in(0).grain);
}

}  // namespace

Layouts reduce(const Case& on) {
  if (on.is_replicated(0)) return {kReplicated};
  if (on.is_partial(0) && on.op.op == Op::mean) return {kPartial};
  if (on.is_partial(0)) refuse(on, kReduceFirst);
  if (on.is(0, Kind::flat) || is_reduced(on, on.in(0).where)) refuse(on, kGatherFirst);
  return {kept(on)};
}

Layouts reduce_sum(const Case& on) {
  if (on.is(0, Kind::flat)) refuse(on, kGatherFirst);
  if (!on.is_sharded(0)) return {on.in(0)};
  return {is_reduced(on, on.in(0).where) ? kPartial : kept(on)};
}

// Row-major order: the cut moves to a dimension with equally many elements before it, so that each rank still holds one run per leading
// index.
Layouts reshape(const Case& on) {
  if (on.is(0, Kind::flat)) refuse(on, kGatherFirst);
  if (!on.is_sharded(0)) return {on.in(0)};
  const Shape &x = on.shape(0), &y = on.out[0].shape;
  const int32_t cut = on.in(0).where;
  const auto before = shape_rule::count_of(on.op, x, 0, cut);
  const int64_t given = on.axis == MeshAxis::tensor ? on.op.attrs.integer("cut") : -1;
  int32_t found = -1;
  for (int32_t i = 0; i < y.rank(); ++i) {
    if (!(shape_rule::count_of(on.op, y, 0, i) == before) || (given >= 0 && given != i)) continue;
    if (found < 0 || y[found] == 1) found = i;  // if there are several, the first with a size above 1
    if (y[i] == x[cut]) {
      found = i;
      break;
    }
  }
  if (found < 0)
    refuse(on, text("dimension ", cut, " is sharded and becomes part of another one in ", on.out[0].shape, "; ", kGatherFirst));
  if (on.in(0).grain > 0 && y[found] != x[cut]) refuse(on, "dimension sharded in segments must keep its size");
  return {sharded(found, on.in(0).grain)};
}

Layouts broadcast_to(const Case& on) {
  if (on.is(0, Kind::flat)) refuse(on, kGatherFirst);
  if (!on.is_sharded(0)) return {on.in(0)};
  const AxisLayout out = aligned(on, 0);
  if (on.shape(0)[on.in(0).where] != on.out[0].shape[out.where]) refuse(on, "a sharded dimension cannot be broadcast");
  return {out};
}

Layouts transpose(const Case& on) {
  if (on.is(0, Kind::flat)) refuse(on, kGatherFirst);
  if (!on.is_sharded(0)) return {on.in(0)};
  const Ints& order = on.op.attrs.ints("order");
  return {sharded(static_cast<int32_t>(std::ranges::find(order, on.in(0).where) - order.begin()), on.in(0).grain)};
}

Layouts pieces(const Case& on) {  // slice, pad, split, concat: linear along their axis; other dimensions may be sharded
  for (size_t i = 1; i < on.inputs(); ++i) need_equal(on, 0, i);
  if (on.is_partial(0)) return every_output(on, kPartial);
  // Cut in segments, as the columns of several weights in one: each piece of a split is sharded, and so joins again.
  const bool is_along = on.is_sharded(0) && on.in(0).where == shape_rule::axis_of(on.op, on.shape(0));
  if (is_along && on.op.op == Op::split && on.in(0).grain == 1) return every_output(on, sharded(on.in(0).where));
  if (is_along && on.op.op == Op::concat && on.in(0).grain == 0) return every_output(on, sharded(on.in(0).where, 1));
  return every_output(on, rows_of(on, shape_rule::axis_of(on.op, on.shape(0))));
}

namespace {

using Rule = Layouts (*)(const Case&);
constexpr std::array<Rule, kOps> kRules = {
#define ST_OP(name, inputs, outputs, attrs, shape_rule, layout_rule, ...) &layout_rule,
#include "ir/ops.def"
#undef ST_OP
};

}  // namespace

static void infer_axis(const OpTypes& op, MeshAxis axis, std::vector<Type>& out) {
  const Layouts layouts = kRules[static_cast<size_t>(op.op)]({.op = op, .out = out, .axis = axis});
  for (size_t i = 0; i < out.size(); ++i) out[i].layout[axis] = layouts[i];
}

}  // namespace st::layout_rule

namespace st {

void infer_layouts(const OpTypes& op, const Mesh& mesh, std::vector<Type>& out) {
  for (int32_t i = 0; i < kMeshAxes; ++i) {
    const auto axis = static_cast<MeshAxis>(i);
    if (mesh.size(axis) > 1) layout_rule::infer_axis(op, axis, out);
  }
}

std::vector<Type> infer(const OpTypes& op, const Mesh& mesh) {
  auto out = infer_shapes(op);
  infer_layouts(op, mesh, out);
  return out;
}

std::vector<Type> infer(const Program& program, const Graph& graph, const Node& node) {
  if (node.op == Op::load) {
    require(node.reads.size() == 1, Code::internal, "load: must read one slot, got ", node.reads.size());
    const bool is_of_shard = !node.out.empty() && node.out[0].layout.is_flat();  // which the load itself says
    return {is_of_shard ? shard_type(program, node.reads[0]) : own_type(program, program.slots.at(static_cast<size_t>(node.reads[0])))};
  }
  std::vector<Type> in;
  in.reserve(node.in.size());
  for (const Value value : node.in) in.push_back(graph.type(value));
  return infer({.op = node.op, .in = in, .attrs = node.attrs}, program.mesh);
}

}  // namespace st
