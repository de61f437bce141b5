#include "passes/first_norm.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"

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
      squares[i] = append(Op::gradient_squares, {sum}, {.dtype = DType::f64, .shape = {norm_blocks(type.shape.elements())}, .layout = {}});
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

/// In forward, the first rank's own count, to which the others add nothing when reports are summed.
void report_own_count(Program& program) {
  Section& forward = *program.find(Phase::forward);
  const SlotId count = program.step.loss_count;
  Builder b(program, static_cast<int32_t>(&forward - program.sections.data()));
  const auto is_count = [&](const Node& node) { return node.op == Op::store && node.writes[0] == count; };
  const auto found = std::ranges::find_if(forward.graph.nodes, is_count);
  require(found != forward.graph.nodes.end(), Code::internal, "first_norm: forward counts no loss");
  const Value own = found->in[0];
  program.step.first_loss_count = add_report(b, program.rank == 0 ? own : b.fill({}, 0, DType::f64), "first_loss_count");
}

/// Reports the first rank's norm on all ranks.
void share_norm(Builder& b, const std::vector<Value>& squares) {
  const Value own = b.program().rank == 0 ? norm_of(b, squares) : b.fill({}, 0, DType::f64);
  const SlotId slot = b.program().add_slot({.name = "first_norm", .type = b.type(own), .role = Role::report, .init = {}});
  b.graph().nodes.push_back(
      {.op = Op::rank_sums, .in = {own}, .out = {}, .reads = {}, .writes = {slot}, .attrs = make_attrs(Op::rank_sums, {{"adds", false}})});
  b.program().step.first_norm = slot;
}

}  // namespace

void first_norm(Program& program) {
  Section* section = program.find(Phase::backward);
  require(section != nullptr, Code::internal, "first_norm: no backward section; call autodiff() first");
  const Gradients gradients = gradient_slots(program);
  const bool has_ranks = program.mesh.data > 1 && !gradients.empty();
  std::vector<Value> squares;
  if (has_ranks && program.rank == 0) squares = squares_as_made(program, *section, gradients);
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const int32_t begin = b.graph().size();
  if (has_ranks) {
    share_norm(b, squares);
    report_own_count(program);
  } else {
    program.step.first_norm = add_report(b, norm_of_slots(b, gradients), "first_norm");
    program.step.first_loss_count = add_report(b, b.load(program.step.loss_count), "first_loss_count");
  }
  for (int32_t n = begin; n < b.graph().size(); ++n) b.graph()[n].when = When::first;
}

}  // namespace st
