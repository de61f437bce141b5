#include "passes/zero_shard.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "passes/copied_weights.h"
#include "passes/gather_units.h"
#include "passes/gradient_slots.h"
#include "passes/product_weights.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// This rank's shard of a copy, made of its parameter's: nodes of `from`.
void make_shard(Program& program, Rewrite& rewrite, const Graph& from, const CopyMaker& maker) {
  if (!has_shard(program, maker.parameter)) return;
  Node load = from[maker.load], cast = from[maker.cast], store = from[maker.store];
  load.out = {own_type(program, program.slot(maker.parameter))};
  cast.out = {shard_type(program, maker.copy)};
  cast.in = {{rewrite.append(std::move(load)), 0}};
  store.in = {{rewrite.append(std::move(cast)), 0}};
  rewrite.append(std::move(store));
}

/// The shards of all copies and their gather.
void make_shards(Program& program, Rewrite& rewrite, const std::vector<Section>& sections, const std::vector<CopyMaker>& makers) {
  std::vector<SlotId> copies;
  for (const CopyMaker& maker : makers) {
    copies.push_back(maker.copy);
    make_shard(program, rewrite, sections[static_cast<size_t>(maker.section)].graph, maker);
  }
  rewrite.append({.op = Op::all_gather,
                  .in = {},
                  .out = {},
                  .reads = {},
                  .writes = std::move(copies),
                  .attrs = make_attrs(Op::all_gather, {}),
                  .when = When::first});
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
  const std::vector<bool> is_copied = copied_weights(program);
  const auto is_master = [&](SlotId slot) {
    return slot < std::ssize(is_copied) && is_copied[static_cast<size_t>(slot)] && is_cut(program, slot);
  };
  std::vector<CopyMaker> makers = copy_makers(program);
  std::erase_if(makers, [&](const CopyMaker& maker) { return !is_master(maker.parameter); });
  for (SlotId slot = 0; slot < std::ssize(program.slots); ++slot)  // of all stages
    if (is_master(slot)) make_flat(program, slot, slot);
  if (makers.empty()) return;
  for (const CopyMaker& maker : makers) program.slot(maker.copy).borrowed = borrows_copies;
  const std::vector<Section> old = program.sections;
  bool has_made = borrows_copies;
  for (size_t s = 0; s < old.size(); ++s) {
    if (old[s].phase != Phase::forward) continue;
    Rewrite rewrite(program, program.sections[s]);
    if (!std::exchange(has_made, true)) make_shards(program, rewrite, old, makers);
    std::vector<bool> is_gone(old[s].graph.nodes.size());
    for (const CopyMaker& maker : makers)
      if (maker.section == static_cast<int32_t>(s))
        for (const int32_t node : {maker.load, maker.cast, maker.store}) is_gone[static_cast<size_t>(node)] = true;
    for (int32_t n = 0; n < rewrite.old().size(); ++n)
      if (!is_gone[static_cast<size_t>(n)]) rewrite.keep(n);
    rewrite.finish();
  }
}

}  // namespace st
