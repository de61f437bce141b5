#include "train/state_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/rank_texts.h"
#include "ir/cuts.h"

namespace st {
namespace {

/// The rank that answers for this rank's range of a slot; the first of an axis answers for a range that all along it have.
int32_t answers_for(const Program& program, bool is_shard, bool is_cut) {
  return rank_at(program.mesh, {.data = is_shard ? program.rank : 0, .tensor = is_cut ? program.tensor_rank : 0, .stage = program.stage});
}

StateTensor::Piece piece_in(const Executor& rank, SlotId slot) {
  const Operand& operand = rank.slot(slot);
  const Program& program = rank.plan().program;
  const Slot& of = program.slot(slot);
  ParameterPiece piece = piece_of(program, of, program.tensor_rank);
  const int32_t answers = answers_for(program, of.type.layout.is_flat(), piece.is_cut());
  return {{own_begin(program, of), operand.elements(), std::move(piece)}, operand.data, answers};
}

/// Those of one rank, in the order of its slots.
std::vector<StateTensor> state_in(const Executor& rank) {
  std::vector<StateTensor> all;
  const std::vector<Slot>& slots = rank.plan().program.slots;
  const bool is_split = rank.plan().program.mesh.stage > 1 || rank.plan().program.mesh.tensor > 1;
  for (size_t s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    if ((slot.role != Role::parameter && slot.role != Role::optimizer) || !is_here(rank.plan().program, slot)) continue;
    StateTensor tensor{
        .name = slot.name, .role = slot.role, .of = slot.of, .type = slot.type, .is_sharded = is_split || slot.type.layout.is_flat()};
    tensor.pieces.push_back(piece_in(rank, static_cast<SlotId>(s)));
    if (const ParameterPiece& piece = tensor.pieces[0].range.piece; piece.is_cut())
      tensor.type.shape = slot.type.shape.rank() == piece.whole.rank() ? piece.whole : Shape{piece.whole.elements()};
    tensor.type.layout = tensor.type.layout.only(MeshAxis::data);
    all.push_back(std::move(tensor));
  }
  return all;
}

/// A rank's description of a tensor: these numbers, followed by the name and the segments of its piece.
struct TensorPlace {
  int64_t first = 0, elements = 0, name = 0, segments = 0;  // name: its bytes; segments: their number
  std::array<int64_t, kMaxDims> dims{}, cut_dims{};         // of the tensor, and of the whole as its piece's dimensions
  int32_t rank = 0, role = 0, of = 0, dtype = 0;
  int32_t cut_dimension = -1, cut_rank = 0, cut_ranks = 1, cut_dims_count = 0;
};

std::string told(std::span<const StateTensor> tensors, int32_t own_rank) {
  std::string out;
  for (const StateTensor& t : tensors) {
    if (!t.is_sharded || t.pieces[0].rank != own_rank) continue;
    const auto& [first, elements, piece] = t.pieces[0].range;
    TensorPlace one{.first = first, .elements = elements, .name = std::ssize(t.name), .segments = std::ssize(piece.segments)};
    std::ranges::copy(t.type.shape, one.dims.begin());
    std::ranges::copy(piece.whole, one.cut_dims.begin());
    one.cut_dims_count = piece.whole.rank();
    one.cut_dimension = piece.dimension;
    one.cut_rank = piece.rank;
    one.cut_ranks = piece.ranks;
    one.rank = t.type.shape.rank();
    one.role = static_cast<int32_t>(t.role);
    one.of = t.of;
    one.dtype = static_cast<int32_t>(t.type.dtype);
    out.append(reinterpret_cast<const char*>(&one), sizeof one).append(t.name);
    out.append(reinterpret_cast<const char*>(piece.segments.data()), piece.segments.size() * sizeof(int64_t));
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
                  .pieces = {{{one.first, one.elements}, {}, rank}}};
    text.remove_prefix(t.name.size());
    const auto shape_of = [](const auto& dims, int32_t count) {
      return Shape({dims.data(), static_cast<size_t>(std::clamp(count, 0, kMaxDims))});
    };
    t.type.shape = shape_of(one.dims, one.rank);
    if (one.cut_dimension >= 0) {
      ParameterPiece& piece = t.pieces[0].range.piece;
      piece = {.whole = shape_of(one.cut_dims, one.cut_dims_count),
               .dimension = one.cut_dimension,
               .segments = {},
               .rank = one.cut_rank,
               .ranks = one.cut_ranks};
      piece.segments.resize(static_cast<size_t>(one.segments));
      require(text.size() >= piece.segments.size() * sizeof(int64_t), Code::rank_mismatch, "trainer: rank ", rank,
              " reported malformed state");
      std::memcpy(piece.segments.data(), text.data(), piece.segments.size() * sizeof(int64_t));
      text.remove_prefix(piece.segments.size() * sizeof(int64_t));
    }
    to.push_back(std::move(t));
  }
}

}  // namespace

void StateTensor::to_host(Backend& backend, int64_t first, std::span<std::byte> out) const {
  const int64_t width = bytes_of(type.dtype);
  for (const Piece& piece : pieces) {
    if (!piece.data) continue;
    const int64_t begin = first / width, end = begin + std::ssize(out) / width;
    piece.range.each_run_between(begin, end, [&](int64_t in_whole, int64_t in_range, int64_t elements) {
      backend.to_host(out.data() + (in_whole - begin) * width, piece.data + in_range * width, elements * width);
    });
  }
}

std::vector<StateTensor> state_tensors_of(std::span<const Executor* const> ranks, std::span<const StateTensor> others) {
  std::vector<StateTensor> all;
  const auto answers = [](const StateTensor& tensor, const Program& program) {  // or another data rank does, from which Ranks copies
    return position_of(program.mesh, tensor.pieces[0].rank).data == program.rank;
  };
  for (const Executor* rank : ranks)
    for (StateTensor& tensor : state_in(*rank))
      if (ranks.size() == 1 || answers(tensor, rank->plan().program)) all.push_back(std::move(tensor));
  all.insert(all.end(), others.begin(), others.end());
  const auto place_of = [](const StateTensor& t) {
    return std::tuple(std::string_view(t.name), t.pieces[0].range.first, t.pieces[0].rank);
  };
  std::ranges::stable_sort(all, {}, place_of);
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
      piece.range.first = cuts[program.rank];
      piece.range.elements = cuts.elements_of(program.rank);
      piece.data += cuts[program.rank] * bytes_of(tensor.type.dtype);
      piece.rank = answers_for(program, true, piece.range.piece.is_cut());
    }
    if (piece.range.elements == 0) continue;  // other ranks have all of it
    const bool is_cut = piece.range.piece.is_cut();
    tensor.pieces.push_back(std::move(piece));
    if (!tensor.is_sharded && !is_cut) break;
  }
  const Program& program = ranks.front()->plan().program;
  const bool is_split = program.mesh.stage > 1 || program.mesh.tensor > 1;
  if ((!tensor.is_sharded && !is_split) || ranks.size() > 1) return tensor;
  const std::vector<StateTensor::Piece> own = std::exchange(tensor.pieces, {});
  Slot summed = program.slot(program.slot_named(parameter.name));
  summed.type.layout[MeshAxis::data] = tensor.is_sharded ? summed.update : AxisLayout();
  tensor.is_sharded = true;
  for (int32_t rank = 0; rank < program.mesh.ranks(); ++rank)
    if (PieceRange held = held_by(program, summed, rank); held.elements > 0)
      tensor.pieces.push_back({std::move(held), !own.empty() && own[0].rank == rank ? own[0].data : Address(), rank});
  return tensor;
}

}  // namespace st
