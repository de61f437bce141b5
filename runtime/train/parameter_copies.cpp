#include "train/parameter_copies.h"

#include <algorithm>
#include <array>

#include "ir/cuts.h"

namespace st {
namespace {

/// Over the host: a backend has no copy within its own memory.
void copy_between(Backend& backend, std::byte* to, const std::byte* from, int64_t bytes) {
  if (backend.is_host_memory()) {
    backend.to_device(to, from, bytes);
    return;
  }
  std::array<std::byte, 1 << 14> room;
  for (int64_t at = 0; at < bytes; at += std::ssize(room)) {
    const int64_t count = std::min<int64_t>(std::ssize(room), bytes - at);
    backend.to_host(room.data(), from + at, count);
    backend.to_device(to + at, room.data(), count);
  }
}

template <class Copy>
void each_run(const Executor& rank, const Model& model, const Copy& copy_run) {
  const Program& program = rank.plan().program;
  for (const SlotId id : model.parameters()) {
    const Slot& slot = program.slot(id);
    if (!is_here(program, slot)) continue;
    const Operand& own = rank.slot(id);
    const int64_t first = own_begin(program, slot), width = bytes_of(slot.type.dtype);
    slot.piece.each_run(first, own.elements(), [&](int64_t in_whole, int64_t in_piece, int64_t elements) {
      copy_run(slot, model.data(id) + in_whole * width, own.as<std::byte>() + (in_piece - first) * width, elements * width);
    });
  }
}

}  // namespace

void take_parameters(const Executor& rank, const Model& from) {
  Backend& backend = from.context().backend();
  each_run(rank, from,
           [&](const Slot&, const std::byte* whole, std::byte* own, int64_t bytes) { copy_between(backend, own, whole, bytes); });
}

void give_parameters(const Executor& rank, const Model& to) {
  Backend& backend = to.context().backend();
  const Program& program = rank.plan().program;
  each_run(rank, to, [&](const Slot& slot, std::byte* whole, const std::byte* own, int64_t bytes) {
    const bool answers = (slot.type.layout.is_flat() || program.rank == 0) && (slot.piece.is_cut() || program.tensor_rank == 0);
    if (answers) copy_between(backend, whole, own, bytes);
  });
}

}  // namespace st
