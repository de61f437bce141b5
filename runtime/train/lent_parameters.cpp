#include "train/lent_parameters.h"

#include "ir/cuts.h"
#include "train/kernel_needs_of.h"
#include "train/recipe.h"

namespace st {

Program lending(const Model& model) {
  Program program = model.program();
  for (const SlotId parameter : model.parameters()) program.slot(parameter).lent = true;
  return program;
}

/// The plan's parameters are the model's, in its order, but for those that it has no use for.
void lend_parameters(Executor& to, const Model& of, const std::function<const std::byte*(size_t p)>& place) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0, p = 0; s < slots.size(); ++s) {
    if (!slots[s].lent || slots[s].role != Role::parameter) continue;
    while (of.slot(of.parameters()[p]).name != slots[s].name) ++p;
    to.bind(static_cast<SlotId>(s), place(p));
  }
}

void lend_pieces(Executor& to, const Model& of, const Storage& storage) {
  lend_parameters(to, of, [&](size_t p) { return storage.data(Arena::parameters) + of.offset(of.parameters()[p]); });
}

void lend_masters(Executor& to, const Model& of) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0; s < slots.size(); ++s) {
    const SlotId parameter = to.plan().program.whole_of(static_cast<SlotId>(s));
    const Slot& whole = slots[static_cast<size_t>(parameter)];
    if (whole.role != Role::parameter || !whole.lent) continue;
    to.bind(static_cast<SlotId>(s), of.data(parameter) + own_begin(to.plan().program, slots[s]) * bytes_of(whole.type.dtype));
  }
}

void lend_copies(Executor& to, const Executor& from) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0; s < slots.size(); ++s)
    if (slots[s].role == Role::working && slots[s].lent)
      to.bind(static_cast<SlotId>(s), from.slot(from.plan().program.slot_named(slots[s].name)).data);
}

Plan plan_predictions(const Model& model, int64_t rows, const std::vector<std::string>& outputs, int threads, const ExchangeQueue* ranks) {
  PlanOptions options;
  if (ranks != nullptr) options.gathers = model.gathers();
  return plan_inference(ranks == nullptr ? model.program() : lending(model), rows, outputs, false,
                        kernel_needs_of(model.context().backend(), threads), options);
}

}  // namespace st
