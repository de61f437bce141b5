#include "passes/round_gradients.h"

#include <algorithm>
#include <map>

#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"

namespace st {
namespace {

bool writes_gradient(const Program& program, const Node& node) {
  return (node.op == Op::store || node.op == Op::accumulate) && program.slot(node.writes[0]).role == Role::gradient;
}

void round_in(Program& program, Section& section, DType dtype) {
  Rewrite rewrite(program, section);
  std::map<Value, Value> rounded;  // by old value: the first micro-batch and the rest write the same
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    if (!writes_gradient(program, node)) {
      rewrite.keep(n);
      continue;
    }
    Value& value = rounded[node.in[0]];
    if (!value) {
      const DType sum = program.slot(node.writes[0]).type.dtype;
      value = append_cast(rewrite, append_cast(rewrite, rewrite.at(node.in[0]), dtype, node.region), sum, node.region);
    }
    Node write = node;
    write.in[0] = value;
    rewrite.append(std::move(write));
  }
  rewrite.finish();
}

}  // namespace

void round_gradients(Program& program, Reduce reduce, DType dtype, DType sums) {
  if (dtype == DType::f32) return;
  require(has_backward(program), Code::internal, "round_gradients: no backward section; call autodiff() first");
  require(sums == DType::f32 || sums == dtype, Code::internal, "round_gradients: sums of ", sums, ", gradients of ", dtype);
  const bool is_narrow = sums != DType::f32;
  for (Slot& slot : program.slots)
    if (is_narrow && slot.role == Role::gradient && slot.type.dtype == DType::f32) slot.type.dtype = sums;
  const auto adds = [&](const Node& node) { return node.op == Op::accumulate && writes_gradient(program, node); };
  const auto is_rounded_later = [&](const Section& section) {
    return !is_narrow && reduce == Reduce::step && std::ranges::any_of(section.graph.nodes, adds);
  };
  for (Section& section : program.sections)
    if (makes_gradients(program, section) && !is_rounded_later(section)) round_in(program, section, dtype);
}

void round_gradient_sums(Program& program, DType dtype) {
  if (dtype == DType::f32) return;
  Builder b = open_update(program);
  for (const std::vector<SlotId>& uses : gradient_slots(program)) {
    const SlotId sum = uses[0], parameter = program.slot(sum).of;
    const bool is_of_shard = program.slot(parameter).update.is_flat();
    if (!is_here(program, program.slot(sum)) || (is_of_shard && !has_shard(program, parameter))) continue;
    if (program.slot(sum).type.dtype == dtype) continue;  // it was kept so
    const Value value = is_of_shard ? b.load_shard(sum) : b.load(sum);
    b.store(b.as(b.as(value, dtype), b.type(value).dtype), sum);
  }
}

}  // namespace st
