#include "passes/zero_shard.h"

#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "passes/product_weights.h"

namespace st {

void zero_shard(Program& program, int64_t stage, Reduce reduce, int64_t bucket_bytes, const ChooseOptimizer& choose) {
  require(program.find(Phase::forward) != nullptr && program.find(Phase::backward) != nullptr, Code::internal,
          "zero_shard: no backward section; call autodiff() first");
  require(stage == 1 || stage == 2, Code::unsupported, "zero_shard: stage ", stage, " is not there yet; use 1 or 2");
  const std::vector<bool> is_weight = weights_of_products(program);
  cut_parameters(program, [&](const Slot& parameter) {
    const OptimizerChoice optimizer = choose(parameter, is_weight[static_cast<size_t>(&parameter - program.slots.data())]);
    return takes_whole(optimizer.op) ? parameter.type.shape.elements() : kCutGrain;
  });
  program.in_pieces = true;
  exchange_gradients(program, reduce, bucket_bytes, stage == 1 ? Keep::made : Keep::adding);
  exchange_loss(program);
  add_uses_in_pieces(program);
}

std::vector<SlotId> share_masters(Program& program) {
  std::vector<SlotId> masters;
  for (const Slot& copy : program.slots)
    if (copy.role == Role::working && is_cut(program, copy.of)) masters.push_back(copy.of);
  if (program.rank > 0)
    for (const SlotId master : masters) program.slots[static_cast<size_t>(master)].lent = true;
  return masters;
}

}  // namespace st
