#include "passes/first_norm.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_buckets.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"
#include "passes/stage_sums.h"

namespace st {
namespace {

using Gradients = std::vector<std::vector<SlotId>>;  // uses, by parameter

Value norm_of_slots(Builder& b, const Gradients& gradients) {
  std::vector<Value> sums;
  for (const std::vector<SlotId>& uses : gradients) {
    Value sum = b.load(uses[0]);
    for (size_t use = 1; use < uses.size(); ++use) sum = b.add(sum, b.load(uses[use]));
    sums.push_back(sum);
  }
  return b(Op::gradient_norm, sums);
}

/// Other ranks along the tensor axis have the rest of the tensor.
bool is_piece(const Type& type) { return type.layout[MeshAxis::tensor] != AxisLayout{}; }

/// By parameter the sums of its gradient's blocks, taken as the gradient is made, since what ranks exchange lies in no slot whole.
std::vector<Value> squares_as_made(Program& program, Section& section, const Gradients& gradients) {
  Rewrite rewrite(program, section);
  std::vector<Value> made(program.slots.size()), squares;  // made: by gradient's slot
  squares.resize(gradients.size());
  const auto append = [&](Op op, std::vector<Value> in, const Type& type) -> Value {
    return {
        rewrite.append(
            {.op = op, .in = std::move(in), .out = {type}, .reads = {}, .writes = {}, .attrs = make_attrs(op, {}), .when = When::first}),
        0};
  };
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    rewrite.keep(n);
    if (node.op != Op::store || program.slot(node.writes[0]).role != Role::gradient) continue;
    made[static_cast<size_t>(node.writes[0])] = rewrite.at(node.in[0]);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const std::vector<SlotId>& uses = gradients[i];
      const auto value = [&](SlotId use) { return made[static_cast<size_t>(use)]; };
      if (squares[i] || std::ranges::any_of(uses, [&](SlotId use) { return !value(use); })) continue;
      Value sum = value(uses[0]);
      const Type type = rewrite.made().type(sum);
      for (size_t use = 1; use < uses.size(); ++use) sum = append(Op::add, {sum, value(uses[use])}, type);
      Type of_blocks{.dtype = DType::f64, .shape = {norm_blocks(type.shape.elements())}, .layout = {}};
      if (is_piece(type)) of_blocks.layout = Layout::partial(MeshAxis::tensor);
      squares[i] = append(Op::gradient_squares, {sum}, of_blocks);
    }
  }
  rewrite.finish();
  return squares;
}

/// The bits of norm_of_slots().
Value norm_of(Builder& b, const std::vector<Value>& squares) {
  Ints tensors;
  int64_t first = 0;
  for (const Value of_one : squares) {
    const int64_t blocks = b.shape(of_one)[0];
    tensors.insert(tensors.end(), {first, blocks});
    first += blocks;
  }
  return b(Op::norm_of_squares, {squares.size() == 1 ? squares[0] : b(Op::concat, squares, {{"axis", 0}})}, {{"tensors", tensors}});
}

SlotId add_report(Builder& b, Value value, const std::string& name) {
  const SlotId slot = b.program().add_slot({.name = name, .type = b.type(value), .role = Role::report, .init = {}});
  b.store(value, slot, When::first);
  return slot;
}

/// In forward, the first rank's own count, to which the others add nothing when reports are summed. Of stages the last one counts.
void report_own_count(Program& program) {
  const SlotId count = program.step.loss_count;
  if (!program.loss_count) {
    program.step.first_loss_count = program.add_slot(
        {.name = "first_loss_count", .type = {.dtype = DType::f64, .shape = {}, .layout = {}}, .role = Role::report, .init = {}});
    return;
  }
  const Section& forward = *program.last_forward();
  Builder b(program, static_cast<int32_t>(&forward - program.sections.data()));
  const auto is_count = [&](const Node& node) { return node.op == Op::store && node.writes[0] == count; };
  const auto found = std::ranges::find_if(forward.graph.nodes, is_count);
  require(found != forward.graph.nodes.end(), Code::internal, "first_norm: forward counts no loss");
  const Value own = found->in[0];
  program.step.first_loss_count = add_report(b, program.rank == 0 ? own : b.fill({}, 0, DType::f64), "first_loss_count");
}

/// Reports the first rank's norm on all data ranks.
void share_norm(Builder& b, Value norm) {
  const Value own = norm ? norm : b.fill({}, 0, DType::f64);
  const SlotId slot = b.program().add_slot({.name = "first_norm", .type = b.type(own), .role = Role::report, .init = {}});
  b.graph().nodes.push_back(
      {.op = Op::rank_sums, .in = {own}, .out = {}, .reads = {}, .writes = {slot}, .attrs = make_attrs(Op::rank_sums, {{"adds", false}})});
  b.program().step.first_norm = slot;
}

// --- stages

std::string squares_name(const Program& program, SlotId gradient) { return "first_squares." + program.slot(gradient).name; }
std::string kept_name(const Program& program, SlotId gradient) { return "first." + program.slot(gradient).name; }

bool stores(const Section& section, SlotId slot) {
  return std::ranges::any_of(section.graph.nodes, [&](const Node& node) { return node.op == Op::store && node.writes[0] == slot; });
}

/// As squares_as_made().
void keep_as_made(Program& program, Section& section, const std::vector<SlotId>& gradients) {
  Rewrite rewrite(program, section);
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    rewrite.keep(n);
    if (node.op != Op::store || std::ranges::find(gradients, node.writes[0]) == gradients.end()) continue;
    const Value made = rewrite.at(node.in[0]);
    const SlotId kept =
        program.add_slot({.name = kept_name(program, node.writes[0]), .type = rewrite.made().type(made), .role = Role::report, .init = {}});
    rewrite.append(
        {.op = Op::store, .in = {made}, .out = {}, .reads = {}, .writes = {kept}, .attrs = make_attrs(Op::store, {}), .when = When::first});
  }
  rewrite.finish();
}

/// The sum of squares of each tensor whose gradient is made here, and the gradients of tied parameters that are not made here alone.
void keep_first(Program& program, Section& section, const Gradients& gradients) {
  Gradients own;
  std::vector<SlotId> apart;
  for (const std::vector<SlotId>& uses : gradients) {
    const auto here = std::ranges::count_if(uses, [&](SlotId use) { return stores(section, use); });
    if (here == std::ssize(uses)) own.push_back(uses);
    if (here < std::ssize(uses)) std::ranges::copy_if(uses, std::back_inserter(apart), [&](SlotId use) { return stores(section, use); });
  }
  keep_as_made(program, section, apart);
  const std::vector<Value> squares = squares_as_made(program, section, own);
  Builder b(program, static_cast<int32_t>(&section - program.sections.data()));
  const int32_t begin = b.graph().size();
  for (size_t i = 0; i < own.size(); ++i)
    add_report(b, b(Op::tensor_squares, {squares[i]}, {{"tensors", Ints{0, b.shape(squares[i])[0]}}}), squares_name(program, own[i][0]));
  for (int32_t n = begin; n < b.graph().size(); ++n) b.graph()[n].when = When::first;
}

/// The sum of squares of a tensor, where it is known; the stage of a later use hands its gradient to that of the first one.
Value tensor_squares_of(Builder& b, const std::vector<SlotId>& uses) {
  Program& program = b.program();
  const auto kept = [&](SlotId use) { return program.slot_named(kept_name(program, use)); };
  if (const SlotId squares = program.slot_named(squares_name(program, uses[0])); squares >= 0) return b.load(squares);
  const bool has_first = kept(uses[0]) >= 0;
  Value sum = has_first ? b.load(kept(uses[0])) : Value{};
  for (size_t i = 1; i < uses.size(); ++i) {
    const SlotId use = uses[i];
    if (kept(use) >= 0 && !has_first) send_use(b, b.load(kept(use)), use, uses[0]);
    if (!has_first) continue;
    SlotId term = kept(use);
    if (term < 0) {
      Slot room = program.slot(kept(uses[0]));
      room.name = kept_name(program, use);
      term = receive_use(b, use, uses[0], std::move(room));
    }
    sum = b.add(sum, b.load(term));
  }
  if (!has_first) return {};
  const Value squares = b.append(Op::gradient_squares, {sum})[0];
  return b(Op::tensor_squares, {squares}, {{"tensors", Ints{0, b.shape(squares)[0]}}});
}

/// Sums over the tensor ranks, of the tensors that they have in pieces.
void sum_pieces(Builder& b, std::vector<Value>& squares) {
  std::vector<std::pair<Value, SlotId>> terms;
  std::vector<Value*> summed;
  for (Value& of_tensor : squares) {
    if (!of_tensor || !is_piece(b.type(of_tensor))) continue;
    const std::string name = free_name(b.program(), text("first_squares_of_pieces.", terms.size()));
    terms.emplace_back(
        of_tensor,
        b.program().add_slot({.name = name, .type = {.dtype = DType::f64, .shape = {1}, .layout = {}}, .role = Role::report, .init = {}}));
    summed.push_back(&of_tensor);
  }
  if (terms.empty()) return;
  sum_along(b, MeshAxis::tensor, terms);
  for (size_t i = 0; i < summed.size(); ++i) *summed[i] = b.load(terms[i].second);
}

/// In one value, with 0 for tensors of other stages; none if this rank has none.
Value joined(Builder& b, const std::vector<Value>& squares) {
  std::vector<Value> own;
  int64_t others = 0;  // after the last one of this stage
  const auto add_others = [&] {
    if (others > 0) own.push_back(b.fill({std::exchange(others, 0)}, 0, DType::f64));
  };
  for (const Value of_tensor : squares) {
    ++others;
    if (!of_tensor) continue;
    --others;
    add_others();
    own.push_back(of_tensor);
  }
  add_others();
  if (own.size() < 2) return own.empty() ? Value{} : own[0];
  return b(Op::concat, own, {{"axis", 0}});
}

/// The sums over the stages, of the count too.
Value of_all_stages(Builder& b, const std::vector<Value>& squares) {
  Program& program = b.program();
  const SlotId count = program.step.first_loss_count;
  std::vector<std::pair<Value, SlotId>> terms = {{program.loss_count ? b.load(count) : Value{}, count}};
  SlotId all = -1;
  if (const Value own = joined(b, squares)) {
    all = program.add_slot({.name = "first_squares",
                            .type = {.dtype = DType::f64, .shape = {std::ssize(squares)}, .layout = {}},
                            .role = Role::report,
                            .init = {}});
    terms.emplace_back(own, all);
  }
  sum_along(b, MeshAxis::stage, terms);
  return all < 0 ? Value{} : b.load(all);
}

}  // namespace

void first_norm(Program& program) {
  require(has_backward(program), Code::internal, "first_norm: no backward section; call autodiff() first");
  const Gradients gradients = gradient_slots(program);
  if (program.mesh.stage > 1 || program.mesh.tensor > 1) {
    for (Section& section : program.sections)
      if (program.rank == 0 && makes_gradients(program, section)) keep_first(program, section, gradients);
    return report_own_count(program);
  }
  Section* section = program.find(Phase::backward);
  const bool has_ranks = program.mesh.data > 1 && !gradients.empty();
  std::vector<Value> squares;
  if (has_ranks && program.rank == 0) squares = squares_as_made(program, *section, gradients);
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const int32_t begin = b.graph().size();
  if (has_ranks) {
    share_norm(b, program.rank == 0 ? norm_of(b, squares) : Value{});
    report_own_count(program);
  } else {
    program.step.first_norm = add_report(b, norm_of_slots(b, gradients), "first_norm");
    program.step.first_loss_count = add_report(b, b.load(program.step.loss_count), "first_loss_count");
  }
  for (int32_t n = begin; n < b.graph().size(); ++n) b.graph()[n].when = When::first;
}

void share_first_norm(Program& program) {
  Builder b = open_update(program);
  const Gradients gradients = gradient_slots(program);
  std::vector<Value> squares(gradients.size());  // of tensors; none: another stage has it
  Ints tensors;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (program.rank == 0) squares[i] = tensor_squares_of(b, gradients[i]);
    tensors.insert(tensors.end(), {static_cast<int64_t>(i), 1});
  }
  sum_pieces(b, squares);
  const Value all = program.mesh.stage > 1 ? of_all_stages(b, squares) : joined(b, squares);
  const Value norm = all ? b(Op::norm_of_squares, {all}, {{"tensors", tensors}}) : b.fill({}, 0, DType::f64);
  if (program.mesh.data > 1) return share_norm(b, program.rank == 0 ? norm : Value{});
  program.step.first_norm = program.add_slot({.name = "first_norm", .type = b.type(norm), .role = Role::report, .init = {}});
  b.store(norm, program.step.first_norm);
}

}  // namespace st
