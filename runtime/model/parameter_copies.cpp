#include "model/parameter_copies.h"

#include "ir/cuts.h"
#include "model/device_copy.h"

namespace st {
namespace {

template <class Copy>
void each_run(const Executor& rank, const Model& model, const Copy& copy_run) {
  const Program& program = rank.plan().program;
  for (const SlotId id : model.parameters()) {
    const Slot& slot = program.slot(id);
    if (!is_here(program, slot)) continue;
    const Operand& own = rank.slot(id);
    const int64_t first = own_begin(program, slot), width = bytes_of(slot.type.dtype);
    slot.piece.each_run(first, own.elements(), [&](int64_t in_whole, int64_t in_piece, int64_t elements) {
      copy_run(slot, model.data(id) + in_whole * width, own.data + (in_piece - first) * width, elements * width);
    });
  }
}

}  // namespace

void take_parameters(const Executor& rank, const Model& from) {
  Backend& backend = from.context().backend();
  each_run(rank, from, [&](const Slot&, Address whole, Address own, int64_t bytes) { copy_bytes(backend, whole, backend, own, bytes); });
}

void give_parameters(const Executor& rank, const Model& to) {
  Backend& backend = to.context().backend();
  const Program& program = rank.plan().program;
  each_run(rank, to, [&](const Slot& slot, Address whole, Address own, int64_t bytes) {
    const bool answers = (slot.type.layout.is_flat() || program.rank == 0) && (slot.piece.is_cut() || program.tensor_rank == 0);
    if (answers) copy_bytes(backend, own, backend, whole, bytes);
  });
}

}  // namespace st
