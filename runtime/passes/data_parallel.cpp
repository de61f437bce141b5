#include "passes/data_parallel.h"

#include "base/error.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"

namespace st {

void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes, bool sums_loss, DType dtype) {
  require(has_backward(program), Code::internal, "data_parallel: no backward section; call autodiff() first");
  cut_parameters(program);
  exchange_gradients(program, reduce, bucket_bytes, Keep::whole, dtype);
  if (sums_loss) exchange_loss(program);
  open_update(program);
  std::vector<SlotId> wholes;
  for (const std::vector<SlotId>& uses : gradient_slots(program))
    if (uses.size() > 1 && is_here(program, program.slot(uses[0]))) wholes.push_back(uses[0]);
  if (wholes.empty()) return;
  program.sections.back().graph.nodes.push_back(
      {.op = Op::all_gather, .in = {}, .out = {}, .reads = {}, .writes = wholes, .attrs = make_attrs(Op::all_gather, {})});
}

}  // namespace st
