#include "passes/tensor_parallel.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "ir/rules.h"
#include "passes/rewrite.h"
#include "passes/tensor_split.h"

namespace st {
namespace {

Shape as_rows(const Shape& shape) { return shape.rank() < 2 ? shape : Shape{shape.elements(0, shape.rank() - 1), shape.last()}; }

class Splitting {
 public:
  Splitting(Program& program, Section& forward, const Program* like)
      : program_(program),
        ranks_(program.mesh.tensor),
        split_(split_products(program, forward, program.mesh.tensor, like)),
        rewrite_(program, forward) {
    cut_slots();
  }

  void run() {
    for (at_ = 0; at_ < old().size(); ++at_) take(old()[at_]);
    program_.outputs.clear();
    for (const Value v : {program_.loss_sum, program_.loss_count})
      if (v) rewrite_.map(v, whole(v));
    rewrite_.finish();
  }

 private:
  using Kind = TensorSplit::Kind;

  /// How a value of the old graph is had here. `rows`: this rank's of [rows, last dimension], or of a vector.
  struct Forms {
    Value whole, rows, columns, parts;  // parts: whole, for a part of the work
  };

  const Graph& old() const { return rewrite_.old(); }
  const Type& type(Value made) const { return rewrite_.made().type(made); }
  Forms& forms(Value v) { return forms_[v]; }

  /// Parameters and their working copies.
  void cut_slots() {
    for (auto& [id, cut] : split_.parameters) {
      const ParameterPiece piece{.whole = program_.slot(id).type.shape,
                                 .dimension = cut.dimension,
                                 .segments = {cut.segments.begin(), cut.segments.end()},
                                 .rank = program_.tensor_rank,
                                 .ranks = ranks_};
      for (Slot& slot : program_.slots) {
        const bool is_copy = slot.role == Role::working && slot.of == id;
        if (&slot != &program_.slot(id) && !is_copy) continue;
        slot.type.shape[cut.dimension] = slot.type.shape[cut.dimension] / ranks_;
        slot.type.layout[MeshAxis::tensor] = cut_layout(cut);
        if (!is_copy) slot.piece = piece;
      }
    }
  }
  static AxisLayout cut_layout(const TensorCut& cut) {
    return {.kind = AxisLayout::Kind::sharded, .where = cut.dimension, .grain = cut.segments.size() > 1 ? 1 : 0};
  }

  // --- making nodes

  Value make(Op op, std::vector<Value> in, const Attrs& attrs = {}) {
    Node node{
        .op = op, .in = std::move(in), .out = {}, .reads = {}, .writes = {}, .attrs = make_attrs(op, attrs), .region = old()[at_].region};
    node.out = infer(program_, rewrite_.made(), node);
    return {rewrite_.append(std::move(node)), 0};
  }
  Value reshaped(Value v, const Shape& shape) {
    return type(v).shape == shape ? v : make(Op::reshape, {v}, {{"shape", Ints(shape.begin(), shape.end())}});
  }
  /// The node at_ over these inputs; its index.
  int32_t emit(std::vector<Value> in, const Attrs* attrs = nullptr) {
    Node node = old()[at_];
    node.in = std::move(in);
    if (attrs != nullptr) node.attrs = *attrs;
    node.out = infer(program_, rewrite_.made(), node);
    return rewrite_.append(std::move(node));
  }
  Value cast_to(Value v, DType dtype) { return type(v).dtype == dtype ? v : make(Op::cast, {v}, {{"dtype", std::string(name_of(dtype))}}); }
  static DType summed_in(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }

  // --- forms of values

  bool divides(Value v) const {
    const Shape& shape = old().type(v).shape;
    return shape.rank() > 0 && as_rows(shape)[0] % ranks_ == 0;
  }
  bool has_rows(Value v) { return forms(v).rows || (forms(v).whole && divides(v)); }
  /// A vector is one row for what works along the last dimension.
  bool has_rows_of_many(Value v) { return old().type(v).shape.rank() >= 2 && has_rows(v); }
  /// Whether it lies in rows already: ops that need no other rows then continue with them.
  bool is_rows(Value v) { return static_cast<bool>(forms(v).rows); }

  Value whole(Value v) {
    Forms& of = forms(v);
    if (!of.whole && of.rows) of.whole = gathered(v, "whole");
    require(static_cast<bool>(of.whole), Code::internal, "tensor_parallel: a value lies in columns where all of it is needed");
    return of.whole;
  }
  Value gathered(Value v, const char* uses) {
    return reshaped(make(Op::tensor_gather, {forms(v).rows}, {{"ranks", int64_t{ranks_}}, {"uses", std::string(uses)}}),
                    old().type(v).shape);
  }
  Value rows(Value v) {
    Forms& of = forms(v);
    if (!of.rows) {
      const Value flat = reshaped(whole(v), as_rows(old().type(v).shape));
      of.rows = make(Op::tensor_part, {flat}, {{"rank", int64_t{program_.tensor_rank}}, {"ranks", int64_t{ranks_}}});
    }
    return of.rows;
  }
  Value parts(Value v) {
    Forms& of = forms(v);
    if (!of.parts) of.parts = of.rows ? gathered(v, "parts") : shared(v);
    return of.parts;
  }
  /// A whole value for a part of the work. A parameter is shared by each boundary scope for itself: its uses have gradients of their own.
  Value shared(Value v, std::string_view uses = "parts") {
    const Value here = whole(v);
    if (!is_floating(type(here).dtype)) return here;
    auto& found = shared_[{here, program_.boundary_of(old()[at_].region), uses}];
    if (!found) found = make(Op::tensor_share, {here}, {{"uses", std::string(uses)}});
    return found;
  }

  void set_rows(int32_t node) {
    for (int32_t o = 0; o < static_cast<int32_t>(old()[at_].out.size()); ++o) forms({at_, o}).rows = {node, o};
  }
  void set_columns(int32_t node) {
    for (int32_t o = 0; o < static_cast<int32_t>(old()[at_].out.size()); ++o) forms({at_, o}).columns = {node, o};
  }
  void set_whole(int32_t node) {
    for (int32_t o = 0; o < static_cast<int32_t>(old()[at_].out.size()); ++o) forms({at_, o}).whole = {node, o};
  }

  // --- nodes

  void take(const Node& node) {
    const Kind kind = split_.kinds[static_cast<size_t>(at_)];
    if (node.op == Op::load || is_of_cut_parameter(node)) return take_slot(node);
    if (kind == Kind::columns) return take_columns(node);
    if (kind == Kind::rows) return take_rows(node);
    if (kind == Kind::vocabulary) return node.op == Op::embedding ? take_embedding(node) : take_vocabulary_loss(node);
    if (std::ranges::any_of(node.in, [&](Value v) { return static_cast<bool>(forms(v).columns) && !is_parameter(v); }))
      return node.op == Op::store ? take_output(node) : take_between(node);
    if (is_weight_product(program_, old(), node)) return take_product(node);
    switch (node.op) {
      case Op::layer_norm:
      case Op::rms_norm:
        return has_rows_of_many(node.in[0]) ? take_by_rows(node) : take_whole(node);
      case Op::cross_entropy:
        return has_rows_of_many(node.in[0]) ? take_loss(node) : take_whole(node);
      case Op::reshape:
        return is_rows(node.in[0]) && as_rows(node.out[0].shape) == as_rows(old().type(node.in[0]).shape) ? keep_rows(node)
                                                                                                          : take_whole(node);
      case Op::dropout:
        return is_rows(node.in[0]) ? take_dropout(node) : take_whole(node);
      default:
        return info_of(node.op).elementwise && fits_rows(node) ? take_by_rows(node) : take_whole(node);
    }
  }

  bool is_parameter(Value v) const { return parameter_behind(program_, old(), v) >= 0; }
  bool is_of_cut_parameter(const Node& node) const {
    if (node.op != Op::cast && node.op != Op::store) return false;
    return split_.parameters.contains(parameter_behind(program_, old(), node.in[0]));
  }

  /// Loads, and how working copies of cut parameters are made.
  void take_slot(const Node& node) {
    if (node.op == Op::load) {
      Node load = node;
      load.out = {program_.slot(node.reads[0]).type};
      const int32_t made = rewrite_.append(std::move(load));
      split_.parameters.contains(program_.parameter_of(node)) ? set_columns(made) : set_whole(made);
    } else {
      set_columns(emit({forms(node.in[0]).columns}));
    }
  }

  void take_columns(const Node& node) {
    std::vector<Value> in = {parts(node.in[0])};
    for (size_t i = 1; i < node.in.size(); ++i) in.push_back(forms(node.in[i]).columns);
    set_columns(emit(std::move(in)));
  }

  /// A sum over the ranks of products of their columns; then the bias, once.
  void take_rows(const Node& node) {
    const bool has_bias = node.op == Op::linear;
    const Value x = forms(node.in[0]).columns, weight = forms(node.in[1]).columns;
    const bool is_transposed = node.attrs.flag(has_bias ? "transpose_weight" : "transpose_b");
    const std::string result(type(x).dtype == summed_in(type(x).dtype) ? "same" : "f32");
    const Value flat = reshaped(x, as_rows(type(x).shape));
    const Value partial = make(Op::matmul, {flat, weight}, {{"transpose_b", is_transposed}, {"result", result}});
    const DType dtype = node.out[0].dtype;
    if (divides({at_, 0})) {
      Value y = cast_to(make(Op::tensor_scatter, {partial}, {{"ranks", int64_t{ranks_}}}), dtype);
      if (has_bias) y = make(Op::add, {y, shared(node.in[2])});
      forms({at_, 0}).rows = y;
    } else {
      Value y = cast_to(make(Op::tensor_sum, {partial}), dtype);
      if (has_bias) y = make(Op::add, {y, shared(node.in[2], "whole")});
      forms({at_, 0}).whole = reshaped(y, node.out[0].shape);
    }
  }

  /// Each token's row is on one rank; the sum with the others' zeros is exact.
  void take_embedding(const Node& node) {
    const int64_t classes = old().type(node.in[0]).shape[0];
    Attrs attrs = node.attrs;
    attrs.set("first", program_.tensor_rank * (classes / ranks_));
    attrs.set("classes", classes);
    const Value partial{emit({forms(node.in[0]).columns, whole(node.in[1])}, &attrs), 0};
    const DType dtype = node.out[0].dtype;
    forms({at_, 0}).whole = cast_to(make(Op::tensor_sum, {cast_to(partial, summed_in(dtype))}), dtype);
  }

  /// The ranks exchange four numbers of each row.
  void take_vocabulary_loss(const Node& node) {
    const int64_t classes = old().type(node.in[0]).shape.last();
    const Value logits = forms(node.in[0]).columns, targets = whole(node.in[1]);
    Attrs of_terms = {{"first", program_.tensor_rank * (classes / ranks_)}, {"classes", classes}};
    of_terms.set("ignore_index", node.attrs.integer("ignore_index"));
    of_terms.set("label_smoothing", node.attrs.real("label_smoothing"));
    const Value own = make(Op::vocabulary_terms, {logits, targets}, of_terms);
    std::vector<Value> in = {logits, targets, make(Op::tensor_gather, {own}, {{"ranks", int64_t{ranks_}}, {"uses", std::string("whole")}})};
    if (node.in.size() > 2) in.push_back(whole(node.in[2]));
    Attrs of_loss = of_terms;
    of_loss.set("z_loss", node.attrs.real("z_loss"));
    const int32_t loss = make(Op::vocabulary_cross_entropy, std::move(in), of_loss).node;
    for (int32_t o = 0; o < 3; ++o) forms({at_, o}).whole = {loss, o};
  }

  /// Between the products of a pair: each rank continues with its columns, or heads.
  void take_between(const Node& node) {
    std::vector<Value> in;
    for (const Value v : node.in) in.push_back(forms(v).columns ? forms(v).columns : shared(v));
    Attrs attrs = node.attrs;
    if (node.op == Op::split) {
      Ints sizes = node.attrs.ints("sizes");
      for (int64_t& size : sizes) size /= ranks_;
      attrs.set("sizes", sizes);
    }
    if (node.op == Op::reshape) {
      Shape shape = node.out[0].shape;
      const int32_t cut = split_.cut[static_cast<size_t>(at_)][0]->dimension;
      shape[cut] = shape[cut] / ranks_;
      attrs.set("shape", Ints(shape.begin(), shape.end()));
      attrs.set("cut", int64_t{cut});
    }
    set_columns(emit(std::move(in), &attrs));
  }

  /// An output of which each rank has columns: as rows of its transpose, gathered.
  void take_output(const Node& node) {
    const Value x = forms(node.in[0]).columns;
    const Shape flat = as_rows(type(x).shape);
    const Attrs swapped = {{"order", Ints{1, 0}}};
    const Value by_rows =
        type(x).shape == flat ? x : make(Op::reshape, {x}, {{"shape", Ints(flat.begin(), flat.end())}, {"cut", int64_t{1}}});
    const Value all =
        make(Op::tensor_gather, {make(Op::transpose, {by_rows}, swapped)}, {{"ranks", int64_t{ranks_}}, {"uses", std::string("whole")}});
    emit({reshaped(make(Op::transpose, {all}, swapped), old().type(node.in[0]).shape)});
  }

  /// A product that is not one of a pair: of this rank's rows and the whole weight.
  void take_product(const Node& node) {
    if (!has_rows_of_many(node.in[0])) return take_whole(node);
    take_by_rows(node);
  }

  /// The first operand, and others of its shape, by rows; what is stretched over the rows is shared.
  void take_by_rows(const Node& node) {
    std::vector<Value> in;
    for (const Value v : node.in) in.push_back(is_stretched(v, node) ? shared(v) : rows(v));
    set_rows(emit(std::move(in)));
  }
  bool is_stretched(Value v, const Node& node) const {
    if (is_weight_product(program_, old(), node)) return v != node.in[0];
    const Shape& shape = old().type(v).shape;
    return shape.rank() < 2 && old().type(node.in[0]).shape.rank() >= 2;
  }
  /// An elementwise op of which an operand lies in rows, and the others do too or are stretched over them.
  bool fits_rows(const Node& node) {
    if (!divides({at_, 0}) || std::ranges::none_of(node.in, [&](Value v) { return is_rows(v); })) return false;
    const Shape& out = node.out[0].shape;
    return std::ranges::all_of(node.in, [&](Value v) {
      const Shape& shape = old().type(v).shape;
      return shape == out ? static_cast<bool>(forms(v).rows) || static_cast<bool>(forms(v).whole)
                          : v != node.in[0] && shape.rank() < 2 && out.rank() >= 2 && (shape.elements() == 1 || shape.last() == out.last());
    });
  }

  void keep_rows(const Node& node) { forms({at_, 0}).rows = rows(node.in[0]); }

  void take_dropout(const Node& node) {
    Attrs attrs = node.attrs;
    const Shape& x = old().type(node.in[0]).shape;
    if (attrs.integer("sample_elements") == 0)
      attrs.set("sample_elements", std::max<int64_t>(1, x.elements(std::min(1, x.rank()), x.rank())));
    const Value own = rows(node.in[0]);
    attrs.set("first", program_.tensor_rank * type(own).shape.elements());
    set_rows(emit({own, whole(node.in[1])}, &attrs));
  }

  /// The loss of this rank's rows, then its sums over the ranks.
  void take_loss(const Node& node) {
    std::vector<Value> in;
    for (const Value v : node.in) {
      const Shape& shape = old().type(v).shape;
      Value own = v == node.in[0] ? rows(v) : Value{};
      if (!own) {
        const Value flat = reshaped(whole(v), {shape.elements()});
        own = make(Op::tensor_part, {flat}, {{"rank", int64_t{program_.tensor_rank}}, {"ranks", int64_t{ranks_}}});
      }
      in.push_back(own);
    }
    const int32_t made = emit(std::move(in));
    for (int32_t o = 0; o < 2; ++o) forms({at_, o}).whole = make(Op::tensor_sum, {{made, o}});
    forms({at_, 2}).rows = {made, 2};
  }

  /// Parameters are shared here too, with whole uses: backward then completes gradients in one order, whether or not rows can be cut, and a
  /// short micro-batch exchanges as full ones do.
  void take_whole(const Node& node) {
    std::vector<Value> in;
    for (const Value v : node.in)
      in.push_back(is_parameter(v) && node.op != Op::cast && node.op != Op::store ? shared(v, "whole") : whole(v));
    set_whole(emit(std::move(in)));
  }

  Program& program_;
  const int32_t ranks_;
  TensorSplit split_;
  Rewrite rewrite_;
  int32_t at_ = 0;
  std::map<Value, Forms> forms_;
  std::map<std::tuple<Value, RegionId, std::string_view>, Value> shared_;
};

}  // namespace

void tensor_parallel(Program& program, const Program* like) {
  if (program.mesh.tensor == 1) return;
  Splitting(program, *program.find(Phase::forward), like).run();
}

void end_tensor_parallel(Program& program) {
  if (program.mesh.tensor == 1) return;
  for (Section& section : program.sections) {
    Rewrite rewrite(program, section);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const Node& node = rewrite.old()[n];
      node.op == Op::tensor_share ? rewrite.map({n, 0}, rewrite.at(node.in[0])) : static_cast<void>(rewrite.keep(n));
    }
    rewrite.finish();
  }
}

}  // namespace st
