#include "passes/zero_shard.h"

#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "passes/gather_units.h"
#include "passes/product_weights.h"

namespace st {

void zero_shard(Program& program, int64_t stage, Reduce reduce, int64_t bucket_bytes, const ChooseOptimizer& choose, bool sums_loss) {
  require(program.find(Phase::forward) != nullptr && program.find(Phase::backward) != nullptr, Code::internal,
          "zero_shard: no backward section; call autodiff() first");
  check(stage >= 1 && stage <= 3, "zero_shard: stage ", stage, " is none of 1 to 3");
  const std::vector<bool> is_weight = weights_of_products(program);
  const auto grain_of = [&](const Slot& parameter) {
    const OptimizerChoice optimizer = choose(parameter, is_weight[static_cast<size_t>(&parameter - program.slots.data())]);
    return takes_whole(optimizer.op) ? parameter.type.shape.elements() : kCutGrain;
  };
  cut_parameters(program, grain_of, stage == 3);
  program.in_pieces = true;
  exchange_gradients(program, reduce, bucket_bytes, stage == 1 ? Keep::made : Keep::adding);
  if (sums_loss) exchange_loss(program);
  add_uses_in_pieces(program);
  if (stage == 3) gather_units(program);
}

std::vector<SlotId> share_masters(Program& program) {
  std::vector<SlotId> masters;
  for (const Slot& copy : program.slots)
    if (copy.role == Role::working && is_cut(program, copy.of)) masters.push_back(copy.of);
  if (program.rank > 0)
    for (const SlotId master : masters) program.slots[static_cast<size_t>(master)].lent = true;
  for (Slot& slot : program.slots) slot.lent = slot.lent || (slot.role == Role::parameter && slot.whole);
  return masters;
}

}  // namespace st
