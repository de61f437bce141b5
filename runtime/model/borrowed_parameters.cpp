#include "model/borrowed_parameters.h"

#include "ir/cuts.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"

namespace st {

Program borrowing(const Model& model) {
  Program program = model.program();
  for (const SlotId parameter : model.parameters()) program.slot(parameter).borrowed = true;
  return program;
}

/// The plan's parameters are the model's, in its order, but for those that it has no use for.
void bind_parameters(Executor& to, const Model& of, const std::function<Address(size_t p)>& place) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0, p = 0; s < slots.size(); ++s) {
    if (!slots[s].borrowed || slots[s].role != Role::parameter) continue;
    while (of.slot(of.parameters()[p]).name != slots[s].name) ++p;
    to.bind(static_cast<SlotId>(s), place(p));
  }
}

void bind_shards(Executor& to, const Model& of, const Storage& storage) {
  bind_parameters(to, of, [&](size_t p) { return storage.data(Arena::parameters) + of.offset(of.parameters()[p]); });
}

void bind_masters(Executor& to, const Model& of) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].role != Role::parameter || !slots[s].borrowed) continue;
    const auto id = static_cast<SlotId>(s);
    to.bind(id, of.data(id) + own_begin(to.plan().program, slots[s]) * bytes_of(slots[s].type.dtype));
  }
}

void bind_copies(Executor& to, const Executor& from) {
  const std::vector<Slot>& slots = to.plan().program.slots;
  for (size_t s = 0; s < slots.size(); ++s)
    if (slots[s].role == Role::working && slots[s].borrowed)
      to.bind(static_cast<SlotId>(s), from.slot(from.plan().program.slot_named(slots[s].name)).data);
}

Plan plan_predictions(const Model& model, int64_t rows, const std::vector<std::string>& outputs, int threads, const ExchangeQueue* ranks,
                      bool on_host) {
  PlanOptions options;
  options.parameters_on_host = on_host;
  if (ranks != nullptr) options.gathers = model.gathers();
  return plan_inference(ranks == nullptr || on_host ? model.program() : borrowing(model), rows, outputs, false,
                        kernel_needs(model.context().backend(), threads), options);
}

}  // namespace st
