#include "ir/build.h"

#include <algorithm>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "ir/piece_update.h"
#include "ir/rules.h"

namespace st {

namespace {

const Slot& slot_of(const Program& program, std::string_view op, SlotId slot) {
  check(slot >= 0 && static_cast<size_t>(slot) < program.slots.size(), op, ": slot ", slot, " does not exist; the program has ",
        program.slots.size());
  return program.slot(slot);
}

// An optimizer's parameter has the gradient's shape, with any dtype; its state slots are those that the op needs for such a parameter.
void check_optimizer_slots(const Program& program, const Graph& graph, const Node& node) {
  const auto slot = [&](size_t i) -> const Slot& { return program.slot(node.writes[i]); };
  const Type &gradient = graph.type(node.in[0]), parameter = access_of(program, graph, node, node.writes[0]).type;
  check(gradient.shape == parameter.shape, name_of(node.op), ": the gradient is ", gradient, ", slot \"", slot(0).name, "\" is ", parameter,
        "; both must have one shape");
  const auto state = optimizer_state(node.op, node.attrs, parameter);
  const bool leaves_copy = node.writes.size() == 2 + state.size();
  check(leaves_copy || node.writes.size() == 1 + state.size(), name_of(node.op), ": needs ", state.size(), " state slots for a parameter ",
        parameter, ", optionally followed by one working copy, got ", node.writes.size() - 1);
  if (leaves_copy) {
    const Slot& copy = slot(1 + state.size());
    check(is_working_copy(program, node.writes.back(), node.writes[0]), name_of(node.op), ": \"", copy.name,
          "\" is not a working copy of \"", slot(0).name, "\"");
  }
  for (size_t i = 0; i < state.size(); ++i) {
    const Type own = own_type(program, slot(i + 1));
    check(own.dtype == state[i].type.dtype && own.shape == state[i].type.shape && own.layout.is_flat() == parameter.layout.is_flat(),
          name_of(node.op), ": its ", state[i].name, " of ", parameter, " is ", state[i].type, ", slot \"", slot(i + 1).name, "\" is ",
          own);
  }
}

// A slot is written with its own type.
void check_writes(const Program& program, const Graph& graph, const Node& node) {
  if (info_of(node.op).shape_rule == "optimizer") return check_optimizer_slots(program, graph, node);
  if (updates_piece(node.op)) return check_piece_update(program, graph, node);
  for (const SlotId id : node.writes) {
    const Slot& slot = program.slot(id);
    const Type& value = graph.type(node.in[0]);
    const Type own = access_of(program, graph, node, id).type;
    check(value == own, name_of(node.op), ": the value is ", value, ", slot \"", slot.name, "\" is ", own,
          "; both must have one dtype, shape and layout");
  }
}

}  // namespace

std::vector<Value> Builder::push(Node node) {
  Graph& own = graph();
  node.region = region_;
  try {
    for (const Value value : node.in)
      check(
          value.node >= 0 && value.node < own.size() && value.output >= 0 && static_cast<size_t>(value.output) < own[value.node].out.size(),
          name_of(node.op), ": value %", value.node, ".", value.output,
          " belongs to another section; store it to a slot there and load it here");
    node.attrs = make_attrs(node.op, node.attrs);
    node.out = infer(program_, own, node);
    check_writes(program_, own, node);
  } catch (const Error& error) {
    rethrow_in_scope(error, node.op);
  }
  std::vector<Value> values;
  for (size_t i = 0; i < node.out.size(); ++i) values.push_back({.node = own.size(), .output = static_cast<int32_t>(i)});
  own.nodes.push_back(std::move(node));
  return values;
}

void Builder::rethrow_in_scope(const Error& error, Op op) const {
  const auto& scope = program_.regions[static_cast<size_t>(region_)].name;
  Error named(error.code(), scope.empty() ? error.message() : text(scope, ": ", error.message()));
  named.place = error.place;
  named.place.op = name_of(op);
  throw named;
}

std::vector<Value> Builder::append(Op op, std::vector<Value> in, const Attrs& attrs) {
  check(op != Op::load && op != Op::store && op != Op::accumulate && op != Op::average, name_of(op),
        ": needs a slot; use Builder::", name_of(op));
  check(!info_of(op).exchange || is_of_values(op), name_of(op), ": is a collective op, which only passes such as data_parallel() add");
  check(!updates_slots(op), name_of(op), ": needs slots; use Builder::update");
  if (op == Op::compare && in.size() == 2) {  // i32 with i64: widened without loss
    const auto is = [&](Value v, DType dtype) { return v.node >= 0 && v.node < graph().size() && type(v).dtype == dtype; };
    for (const size_t i : {0, 1})
      if (is(in[i], DType::i32) && is(in[1 - i], DType::i64)) in[i] = append(Op::cast, {in[i]}, {{"dtype", std::string("i64")}})[0];
  }
  return push({.op = op, .in = std::move(in), .out = {}, .reads = {}, .writes = {}, .attrs = attrs});
}

// --- slots

Value Builder::load(SlotId slot) {
  slot_of(program_, "load", slot);
  return push({.op = Op::load, .in = {}, .out = {}, .reads = {slot}, .writes = {}, .attrs = {}})[0];
}

Value Builder::load_shard(SlotId slot) {
  slot_of(program_, "load", slot);
  return push({.op = Op::load, .in = {}, .out = {shard_type(program_, slot)}, .reads = {slot}, .writes = {}, .attrs = {}})[0];
}

void Builder::write(Op op, Value value, SlotId slot, When when) {
  slot_of(program_, name_of(op), slot);
  push({.op = op, .in = {value}, .out = {}, .reads = {}, .writes = {slot}, .attrs = {}, .when = when});
}

void Builder::store(Value value, SlotId slot, When when) { write(Op::store, value, slot, when); }

void Builder::accumulate(Value value, SlotId slot, When when) { write(Op::accumulate, value, slot, when); }

void Builder::average(Value value, Value skip, Value rates, SlotId slot, double decay) {
  slot_of(program_, "average", slot);
  push({.op = Op::average, .in = {value, skip, rates}, .out = {}, .reads = {}, .writes = {slot}, .attrs = {{"decay", decay}}});
}

std::vector<Value> Builder::update(Op op, std::vector<Value> in, const std::vector<SlotId>& slots, const Attrs& attrs) {
  check(updates_slots(op), name_of(op), ": is not an optimizer; use Builder::append");
  check(!slots.empty(), name_of(op), ": needs its slots, the parameter first");
  check(!in.empty(), name_of(op), ": needs its inputs, the gradient first");
  for (const SlotId slot : slots) slot_of(program_, name_of(op), slot);
  return push({.op = op, .in = std::move(in), .out = {}, .reads = slots, .writes = slots, .attrs = attrs});
}

// --- notation

namespace {

Ints ints_of(const Shape& shape) { return Ints(shape.begin(), shape.end()); }

}  // namespace

Value Builder::fill(const Shape& shape, double value, DType dtype) {
  return (*this)(Op::fill, {}, {{"shape", ints_of(shape)}, {"value", value}, {"dtype", std::string(name_of(dtype))}});
}

Attrs reshape_attrs(const Type& to) {
  const AxisLayout& cut = to.layout[MeshAxis::tensor];
  const int64_t dimension = cut.kind == AxisLayout::Kind::sharded ? cut.where : -1;
  return make_attrs(Op::reshape, {{"shape", ints_of(to.shape)}, {"cut", dimension}});
}

Value Builder::reshape(Value x, const Shape& shape) { return (*this)(Op::reshape, {x}, {{"shape", ints_of(shape)}}); }

Value Builder::sum_to(Value x, const Shape& shape) {
  const Shape from = this->shape(x);
  if (from == shape) return x;
  const int32_t missing = from.rank() - shape.rank();
  bool fits = missing >= 0, stretched = false;
  Ints axes;
  for (int32_t i = 0; fits && i < from.rank(); ++i) {
    if (i >= missing && from[i] == shape[i - missing]) continue;
    fits = i < missing || shape[i - missing] == 1;
    stretched |= i >= missing;
    axes.push_back(i);
  }
  check(fits, "sum_to: ", type(x), " was not broadcast from shape ", shape);
  // One op is enough if only leading dimensions are removed.
  if (missing == 0 || !stretched) return sum(x, axes, missing == 0);
  return reshape(sum(x, axes, true), shape);
}

Value Builder::dropout(Value x, double rate) {
  SlotId& counters = program_.step.counters;
  if (counters < 0) {
    check(program_.slot_named("counters") < 0,
          "dropout: the slot name \"counters\" is reserved for dropout but taken; rename the parameter or input");
    counters = program_.add_slot({.name = "counters", .type = {DType::i64, {2}, {}}, .role = Role::control, .init = {}});
  }
  // Sites are numbered in forward order, so that a site's random numbers do not depend on passes.
  const auto& nodes = graph().nodes;
  const auto last = std::ranges::find(nodes.rbegin(), nodes.rend(), Op::dropout, &Node::op);
  const int64_t site = last == nodes.rend() ? 0 : last->attrs.integer("site") + 1;
  return (*this)(Op::dropout, {x, load(counters)}, {{"rate", rate}, {"site", site}});
}

// --- model building

Value Builder::input(const std::string& name, DType dtype, const Shape& shape) {
  about_tensor(name, [&] {
    check(shape.rank() == 0 || shape[0] > INT64_MIN, "input: \"", name, "\" has shape ", shape,
          "; a negative dimension -n means n times the batch");
    for (int32_t i = 1; i < shape.rank(); ++i)
      check(shape[i] >= 0, "input: \"", name, "\" has shape ", shape, "; only the first dimension may depend on the batch");
  });
  return load(program_.add_slot({.name = name, .type = {.dtype = dtype, .shape = shape, .layout = {}}, .role = Role::input, .init = {}}));
}

Value Builder::parameter(const std::string& name, const Shape& shape, Initializer init, DType dtype) {
  const auto full = scoped(name);
  about_tensor(full, [&] {
    check(!shape.is_symbolic(), "parameter: \"", full, "\" has shape ", shape, "; a parameter's dimensions do not depend on the batch");
    check(is_floating(dtype), "parameter: \"", full, "\" must be floating, got ", dtype);
    check(init.kind != Init::values || static_cast<int64_t>(init.values.size()) == shape.elements(), "parameter: \"", full, "\" has shape ",
          shape, " but ", init.values.size(), " values");
  });
  Slot slot{.name = full, .type = {.dtype = dtype, .shape = shape, .layout = {}}, .role = Role::parameter, .init = std::move(init)};
  return load(program_.add_slot(std::move(slot)));
}

void Builder::enter(const std::string& scope, bool boundary) {
  check(!scope.empty(), "scope: needs a name");
  const auto full = scoped(scope);
  auto& regions = program_.regions;
  const auto known = std::ranges::find(regions, full, &Region::name);
  const auto parent = region_;
  region_ = static_cast<RegionId>(known - regions.begin());
  if (known == regions.end()) return regions.push_back({.name = full, .parent = parent, .boundary = boundary});
  // The same scope again, for example in a loop over time steps: one region, so its nodes are recomputed and cut together.
  const bool same = known->boundary == boundary && known->parent == parent;
  if (!same) region_ = parent;
  check(same, "scope: \"", full, "\" already exists with another parent or boundary flag; choose another name");
}

void Builder::leave() {
  require(region_ > 0, Code::wrong_state, "scope: leave without a matching enter");
  region_ = program_.regions[static_cast<size_t>(region_)].parent;
}

std::string Builder::scoped(const std::string& name) const {
  const auto& scope = program_.regions[static_cast<size_t>(region_)].name;
  return scope.empty() ? name : scope + "." + name;
}

}  // namespace st
