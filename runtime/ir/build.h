// Appends checked nodes to a section. The op's shape rule and layout rule infer the types. Used by model builders and passes.
#pragma once

#include "base/error.h"
#include "ir/program.h"

namespace st {

/// The attributes of a reshape to this type.
Attrs reshape_attrs(const Type& to);

class Builder {
 public:
  /// Appends to `program.sections[section]`. Borrows the program.
  Builder(Program& program, int32_t section) : program_(program), section_(section) {}

  /// Appends any op of ops.def. Throws invalid_argument with the op, the values' shapes and the scope.
  std::vector<Value> append(Op op, std::vector<Value> in, const Attrs& attrs = {});
  Value operator()(Op op, std::vector<Value> in, const Attrs& attrs = {}) { return append(op, std::move(in), attrs)[0]; }

  /// Each call appends a node: load a tied weight once in each scope that uses it, so that each use has its own gradient.
  Value load(SlotId slot);
  /// This rank's shard of a slot with the elements of a cut parameter.
  Value load_shard(SlotId slot);
  /// The value must have the slot's type, or be this rank's shard of it. The node's `writes` names the slot.
  void store(Value value, SlotId slot, When when = When::every);
  void accumulate(Value value, SlotId slot, When when = When::rest);
  /// Moves the slot towards the value (op average), with the `skip` and `rates` of an update.
  void average(Value value, Value skip, Value rates, SlotId slot, double decay);
  /// An optimizer's update, or a step of that of a piece; `op` reads and writes `slots`, the parameter first.
  std::vector<Value> update(Op op, std::vector<Value> in, const std::vector<SlotId>& slots, const Attrs& attrs);
  Value fill(const Shape& shape, double value, DType dtype = DType::f32);

  // The textbook's notation, for models and gradients.
  Value add(Value a, Value b) { return (*this)(Op::add, {a, b}); }
  Value sub(Value a, Value b) { return (*this)(Op::sub, {a, b}); }
  Value mul(Value a, Value b) { return (*this)(Op::mul, {a, b}); }
  Value div(Value a, Value b) { return (*this)(Op::div, {a, b}); }
  Value scale(Value x, double by) { return (*this)(Op::affine, {x}, {{"scale", by}}); }
  Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false) {
    return (*this)(Op::matmul, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  /// Casts x; returns x itself if it has that dtype.
  Value as(Value x, DType dtype) { return type(x).dtype == dtype ? x : (*this)(Op::cast, {x}, {{"dtype", std::string(name_of(dtype))}}); }
  Value reshape(Value x, const Shape& shape);
  Value sum(Value x, const Ints& axes, bool keep_dims = false) { return (*this)(Op::sum, {x}, {{"axes", axes}, {"keep_dims", keep_dims}}); }
  /// Sums `x` down to `shape`: the gradient of a broadcast.
  Value sum_to(Value x, const Shape& shape);
  /// Appends the program's next dropout site. Its counters are the control slot "counters" i64[2], created here if needed: the number of
  /// step attempts, and the index of the micro-batch's first sample in the global batch.
  Value dropout(Value x, double rate = 0);

  // Model building.
  Value input(const std::string& name, DType dtype, const Shape& shape);
  Value parameter(const std::string& name, const Shape& shape, Initializer init, DType dtype = DType::f32);
  void enter(const std::string& scope, bool boundary = true);
  void leave();
  RegionId region() const { return region_; }
  void set_region(RegionId region) { region_ = region; }
  std::string scoped(const std::string& name) const;  // "block.3.attention" + "." + name

  const Type& type(Value v) const { return graph().type(v); }
  const Shape& shape(Value v) const { return type(v).shape; }
  Graph& graph() { return program_.sections[static_cast<size_t>(section_)].graph; }
  const Graph& graph() const { return program_.sections[static_cast<size_t>(section_)].graph; }
  Program& program() { return program_; }

 private:
  std::vector<Value> push(Node node);  // infers the types; every append ends here
  void write(Op op, Value value, SlotId slot, When when);
  [[noreturn]] void rethrow_in_scope(const Error& error, Op op) const;

  Program& program_;
  int32_t section_;
  RegionId region_ = 0;
};

}  // namespace st
