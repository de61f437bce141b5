#include "train/state_tensor.h"

#include <algorithm>

#include "base/text.h"

namespace st {
namespace {

StateTensor::Piece piece_in(const Executor& rank, SlotId slot) {
  const Operand& operand = rank.slot(slot);
  return {rank.plan().program.slots[static_cast<size_t>(slot)].first, operand.elements(), operand.as<std::byte>()};
}

}  // namespace

void StateTensor::to_host(Backend& backend, int64_t first, std::span<std::byte> out) const {
  const int64_t width = bytes_of(type.dtype);
  for (const Piece& piece : pieces) {
    const int64_t begin = std::max(first, piece.first * width);
    const int64_t end = std::min(first + std::ssize(out), (piece.first + piece.elements) * width);
    if (begin < end) backend.to_host(out.data() + (begin - first), piece.data + (begin - piece.first * width), end - begin);
  }
}

std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks) {
  std::vector<StateTensor> all;
  for (const Executor* rank : ranks) {
    const std::vector<Slot>& slots = rank->plan().program.slots;
    for (size_t s = 0; s < slots.size(); ++s) {
      const Slot& slot = slots[s];
      const bool is_state = slot.role == Role::parameter || slot.role == Role::optimizer;
      if (!is_state || (rank != ranks.front() && !slot.whole)) continue;
      Type type = slot.type;
      if (slot.whole) type.shape = *slot.whole;
      all.push_back({&slot, type, {piece_in(*rank, static_cast<SlotId>(s))}});
    }
  }
  std::ranges::stable_sort(all, {}, [](const StateTensor& tensor) -> const std::string& { return tensor.slot->name; });
  std::vector<StateTensor> joined;  // ranks have their pieces in order
  for (StateTensor& tensor : all) {
    if (joined.empty() || joined.back().slot->name != tensor.slot->name)
      joined.push_back(std::move(tensor));
    else
      joined.back().pieces.push_back(tensor.pieces.front());
  }
  return joined;
}

StateTensor gradient_of(std::span<const Executor* const> ranks, const Slot& parameter) {
  StateTensor tensor;
  tensor.type = parameter.type;
  for (const Executor* rank : ranks) {
    const Program& program = rank->plan().program;
    SlotId slot = program.slot_named("gradient." + parameter.name);
    if (slot < 0) return tensor;
    tensor.type.dtype = program.slots[static_cast<size_t>(slot)].type.dtype;
    if (program.in_pieces && !program.slots[static_cast<size_t>(slot)].whole) slot = program.slot_named("part.gradient." + parameter.name);
    if (slot < 0 || rank->slot(slot).elements() == 0) continue;  // other ranks have all of it
    tensor.slot = &program.slots[static_cast<size_t>(slot)];
    tensor.pieces.push_back(piece_in(*rank, slot));
    if (!program.in_pieces) break;
  }
  return tensor;
}

}  // namespace st
