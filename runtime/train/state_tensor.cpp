#include "train/state_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "ir/cuts.h"
#include "train/rank_texts.h"

namespace st {
namespace {

/// The rank that answers for this rank's range of a slot; the first data rank answers for a range that all data ranks have.
int32_t answers_for(const Program& program, bool is_shard) {
  return rank_at(program.mesh, {.data = is_shard ? program.rank : 0, .tensor = program.tensor_rank, .stage = program.stage});
}

/// The cut of the slot's parameter, if the slot has its elements; null: none.
const ParameterPiece* cut_of(const Program& program, const Slot& slot) {
  const Slot& parameter = slot.role == Role::parameter ? slot : program.slot(slot.of);
  return parameter.piece.is_cut() && slot.type.shape == parameter.type.shape ? &parameter.piece : nullptr;
}

StateTensor::Piece piece_in(const Executor& rank, SlotId slot) {
  const Operand& operand = rank.slot(slot);
  const Program& program = rank.plan().program;
  const Slot& of = program.slot(slot);
  return {own_begin(program, of), operand.elements(), operand.as<std::byte>(), answers_for(program, of.type.layout.is_flat()),
          cut_of(program, of)};
}

/// Those of one rank, in the order of its slots.
std::vector<StateTensor> state_in(const Executor& rank) {
  std::vector<StateTensor> all;
  const std::vector<Slot>& slots = rank.plan().program.slots;
  const bool in_stages = rank.plan().program.mesh.stage > 1;
  for (size_t s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    if ((slot.role != Role::parameter && slot.role != Role::optimizer) || !is_here(rank.plan().program, slot)) continue;
    StateTensor tensor{
        .name = slot.name, .role = slot.role, .of = slot.of, .type = slot.type, .is_sharded = in_stages || slot.type.layout.is_flat()};
    if (const ParameterPiece* const cut = cut_of(rank.plan().program, slot)) tensor.type.shape = cut->whole;
    tensor.type.layout = tensor.type.layout.only(MeshAxis::data);
    tensor.pieces.push_back(piece_in(rank, static_cast<SlotId>(s)));
    all.push_back(std::move(tensor));
  }
  return all;
}

/// A rank's description of a tensor: these numbers, followed by the name.
struct TensorPlace {
  int64_t first = 0, elements = 0, name = 0;  // name: its bytes
  std::array<int64_t, kMaxDims> dims{};
  int32_t rank = 0, role = 0, of = 0, dtype = 0;
};

std::string told(std::span<const StateTensor> tensors, int32_t own_rank) {
  std::string out;
  for (const StateTensor& t : tensors) {
    if (!t.is_sharded || t.pieces[0].rank != own_rank) continue;
    TensorPlace one{t.pieces[0].first, t.pieces[0].elements, std::ssize(t.name)};
    std::ranges::copy(t.type.shape, one.dims.begin());
    one.rank = t.type.shape.rank();
    one.role = static_cast<int32_t>(t.role);
    one.of = t.of;
    one.dtype = static_cast<int32_t>(t.type.dtype);
    out.append(reinterpret_cast<const char*>(&one), sizeof one).append(t.name);
  }
  return out;
}

/// The ranks are of one version (rank_agreement.h).
void hear(std::string_view text, int32_t rank, std::vector<StateTensor>& to) {
  while (!text.empty()) {
    TensorPlace one;
    require(text.size() >= sizeof one, Code::rank_mismatch, "trainer: rank ", rank, " reported malformed state");
    std::memcpy(&one, text.data(), sizeof one);
    text.remove_prefix(sizeof one);
    StateTensor t{.name = std::string(text.substr(0, static_cast<size_t>(one.name))),
                  .role = static_cast<Role>(one.role),
                  .of = one.of,
                  .type = {.dtype = static_cast<DType>(one.dtype), .shape = {}, .layout = {}},
                  .is_sharded = true,
                  .pieces = {{one.first, one.elements, nullptr, rank}}};
    text.remove_prefix(t.name.size());
    for (int32_t i = 0; i < std::min(one.rank, kMaxDims); ++i) t.type.shape.push_back(one.dims[static_cast<size_t>(i)]);
    to.push_back(std::move(t));
  }
}

}  // namespace

void StateTensor::to_host(Backend& backend, int64_t first, std::span<std::byte> out) const {
  const int64_t width = bytes_of(type.dtype);
  for (const Piece& piece : pieces) {
    if (piece.data == nullptr) continue;
    if (piece.cut != nullptr) {  // rare, and in whole elements
      piece.each_run(first / width, (first + std::ssize(out)) / width, width, [&](int64_t at, const std::byte* data, int64_t elements) {
        backend.to_host(out.data() + (at * width - first), data, elements * width);
      });
      continue;
    }
    const int64_t begin = std::max(first, piece.first * width);
    const int64_t end = std::min(first + std::ssize(out), (piece.first + piece.elements) * width);
    if (begin < end) backend.to_host(out.data() + (begin - first), piece.data + (begin - piece.first * width), end - begin);
  }
}

std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks, std::span<const StateTensor> others) {
  std::vector<StateTensor> all;
  for (const Executor* rank : ranks)
    for (StateTensor& tensor : state_in(*rank))
      if (ranks.size() == 1 || tensor.pieces[0].rank == rank->plan().program.mesh_rank()) all.push_back(std::move(tensor));
  all.insert(all.end(), others.begin(), others.end());
  const auto first_of = [](const StateTensor& t) { return t.pieces[0].first; };
  std::ranges::stable_sort(
      all, [&](const StateTensor& a, const StateTensor& b) { return a.name != b.name ? a.name < b.name : first_of(a) < first_of(b); });
  std::vector<StateTensor> joined;
  for (StateTensor& tensor : all) {
    if (joined.empty() || joined.back().name != tensor.name)
      joined.push_back(std::move(tensor));
    else
      joined.back().pieces.push_back(tensor.pieces.front());
  }
  return joined;
}

std::vector<StateTensor> pieces_of_others(Communicator& ranks, const Executor& own) {
  const std::vector<StateTensor> here = state_in(own);
  const std::vector<std::string> texts = gather_texts(ranks, told(here, ranks.rank()), "shards of the state");
  std::vector<StateTensor> others;
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (rank != ranks.rank()) hear(texts[static_cast<size_t>(rank)], rank, others);
  std::set<std::pair<int32_t, std::string_view>> alike;  // a replica of another rank's
  for (const StateTensor& tensor : here)
    if (tensor.pieces[0].rank != ranks.rank()) alike.emplace(tensor.pieces[0].rank, tensor.name);
  std::erase_if(others, [&](const StateTensor& tensor) { return alike.contains({tensor.pieces[0].rank, tensor.name}); });
  return others;
}

StateTensor gradient_of(std::span<const Executor* const> ranks, const Slot& parameter) {
  StateTensor tensor;
  tensor.type = parameter.type;
  tensor.name = "gradient." + parameter.name;
  for (const Executor* rank : ranks) {
    const Program& program = rank->plan().program;
    const SlotId slot = program.slot_named(tensor.name);
    if (slot < 0) return tensor;
    tensor.type.dtype = program.slot(slot).type.dtype;
    tensor.is_sharded = program.slot(program.slot(slot).of).update.is_flat();
    StateTensor::Piece piece = piece_in(*rank, slot);
    if (tensor.is_sharded && !program.slot(slot).type.layout.is_flat()) {
      const Cuts cuts = cuts_of(program, program.slot(slot).of);
      piece = {cuts[program.rank], cuts.elements_of(program.rank), piece.data + cuts[program.rank] * bytes_of(tensor.type.dtype),
               answers_for(program, true), piece.cut};
    }
    if (piece.elements == 0) continue;  // other ranks have all of it
    tensor.pieces.push_back(piece);
    if (!tensor.is_sharded && program.mesh.tensor == 1) break;
  }
  const Program& program = ranks.front()->plan().program;
  const bool in_stages = program.mesh.stage > 1;
  if ((!tensor.is_sharded && !in_stages) || ranks.size() > 1) return tensor;
  const std::vector<StateTensor::Piece> own = std::exchange(tensor.pieces, {});
  const auto add = [&](int64_t first, int64_t elements, int32_t rank) {
    if (elements > 0) tensor.pieces.push_back({first, elements, !own.empty() && own[0].rank == rank ? own[0].data : nullptr, rank});
  };
  const SlotId of = program.slot_named(parameter.name);
  const int32_t stage = in_stages ? stage_of(program.slot(of)) : 0;
  const auto rank_of = [&](int32_t data) { return rank_at(program.mesh, {.data = data, .stage = stage}); };
  if (tensor.is_sharded) {
    const Cuts cuts = cuts_of(program, of);
    for (int32_t rank = 0; rank < program.mesh.data; ++rank) add(cuts[rank], cuts.elements_of(rank), rank_of(rank));
  } else {
    tensor.is_sharded = true;
    add(0, tensor.type.shape.elements(), rank_of(0));
  }
  return tensor;
}

}  // namespace st
