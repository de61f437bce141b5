#include "passes/zero_shard.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "passes/gather_units.h"
#include "passes/gradient_slots.h"
#include "passes/product_weights.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// How a working copy is made, as nodes of forward.
struct CopyMaker {
  SlotId parameter, copy;
  std::array<int32_t, 3> nodes;  // load, cast, store
};

/// Finds the makers of working copies, of parameters that forward and backward read in no other way.
std::vector<CopyMaker> makers_in(const Program& program, const Section& forward) {
  std::vector<int32_t> readers(program.slots.size());
  for (const Section& section : program.sections)
    if (section.phase != Phase::update)
      for (const Node& node : section.graph.nodes)
        for (const SlotId read : node.reads) ++readers[static_cast<size_t>(read)];
  const auto uses = uses_of(program, forward);
  const auto is_used_once = [&](int32_t node) { return uses[static_cast<size_t>(node)][0] == 1; };
  std::vector<CopyMaker> makers;
  for (int32_t n = 0; n < forward.graph.size(); ++n) {
    const Node& store = forward.graph[n];
    if (store.op != Op::store) continue;
    const SlotId copy = store.writes[0], parameter = program.slot(copy).of;
    if (program.slot(copy).role != Role::working || !is_cut(program, parameter)) continue;
    const int32_t cast = store.in[0].node, load = forward.graph[cast].in[0].node;
    const bool is_master = forward.graph[cast].op == Op::cast && forward.graph[load].op == Op::load &&
                           forward.graph[load].reads[0] == parameter && readers[static_cast<size_t>(parameter)] == 1 &&
                           is_used_once(load) && is_used_once(cast);
    if (is_master) makers.push_back({parameter, copy, {load, cast, n}});
  }
  return makers;
}

/// This rank's shard of a copy, of its parameter's.
void make_shard(Program& program, Rewrite& rewrite, const CopyMaker& maker) {
  if (!has_shard(program, maker.parameter)) return;
  Node load = rewrite.old()[maker.nodes[0]], cast = rewrite.old()[maker.nodes[1]], store = rewrite.old()[maker.nodes[2]];
  load.out = {own_type(program, program.slot(maker.parameter))};
  cast.out = {shard_type(program, maker.copy)};
  cast.in = {{rewrite.append(std::move(load)), 0}};
  store.in = {{rewrite.append(std::move(cast)), 0}};
  rewrite.append(std::move(store));
}

}  // namespace

void zero_shard(Program& program, int64_t stage, Reduce reduce, int64_t bucket_bytes, const ChooseOptimizer& choose, bool sums_loss,
                DType dtype) {
  require(has_backward(program), Code::internal, "zero_shard: no backward section; call autodiff() first");
  check(stage >= 1 && stage <= 3, "zero_shard: stage must be 1, 2 or 3, got ", stage);
  const std::vector<bool> is_weight = weights_of_products(program);
  const auto grain_of = [&](const Slot& parameter) {
    const OptimizerChoice optimizer = choose(parameter, is_weight[static_cast<size_t>(&parameter - program.slots.data())]);
    return takes_whole(optimizer.op) ? parameter.type.shape.elements() : kCutGrain;
  };
  cut_parameters(program, grain_of, stage == 3);
  update_by_shards(program);
  exchange_gradients(program, reduce, bucket_bytes, stage == 1 ? Keep::made : Keep::adding, dtype);
  if (sums_loss) exchange_loss(program);
  open_update(program);
  if (stage == 3) gather_units(program);
}

std::vector<SlotId> share_masters(Program& program) {
  std::vector<SlotId> masters;
  for (const Slot& copy : program.slots)
    if (copy.role == Role::working && is_cut(program, copy.of)) masters.push_back(copy.of);
  if (program.rank > 0)
    for (const SlotId master : masters) program.slot(master).borrowed = true;
  for (Slot& slot : program.slots) slot.borrowed = slot.borrowed || (slot.role == Role::parameter && slot.type.layout.is_flat());
  return masters;
}

void shard_masters(Program& program, bool borrows_copies) {
  Section& forward = *program.find(Phase::forward);
  const std::vector<CopyMaker> makers = makers_in(program, forward);
  if (makers.empty()) return;
  Rewrite rewrite(program, forward);
  std::vector<bool> is_gone(forward.graph.nodes.size());
  std::vector<SlotId> copies;
  for (const CopyMaker& maker : makers) {
    for (const int32_t node : maker.nodes) is_gone[static_cast<size_t>(node)] = true;
    make_flat(program, maker.parameter, maker.parameter);
    program.slot(maker.copy).borrowed = borrows_copies;
    copies.push_back(maker.copy);
    if (!borrows_copies) make_shard(program, rewrite, maker);
  }
  if (!borrows_copies)
    rewrite.append({.op = Op::all_gather,
                    .in = {},
                    .out = {},
                    .reads = {},
                    .writes = copies,
                    .attrs = make_attrs(Op::all_gather, {}),
                    .when = When::first});
  for (int32_t n = 0; n < rewrite.old().size(); ++n)
    if (!is_gone[static_cast<size_t>(n)]) rewrite.keep(n);
  rewrite.finish();
}

}  // namespace st
