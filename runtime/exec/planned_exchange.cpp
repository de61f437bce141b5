#include "exec/planned_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/cuts.h"

namespace st {
namespace {

using Piece = Communicator::Shard;

Piece piece_of(const Operand& whole, const Ints& cuts, int rank) {
  const int64_t begin = cuts[static_cast<size_t>(rank)], end = cuts[static_cast<size_t>(rank) + 1];
  return {whole.as<std::byte>() + begin * bytes_of(whole.dtype), end - begin};
}

std::string label_of(const std::string& first, size_t count) { return count == 1 ? first : text(first, " and ", count - 1, " more"); }

}  // namespace

PlannedExchange::PlannedExchange(const Program& program, const Node& node, const Call& call, Communicator& ranks)
    : ranks_(ranks), op_(node.op), is_once_a_step_(node.when == When::last) {
  const auto size = static_cast<size_t>(ranks.size());
  parts_.resize(size);
  const auto cut = [&](SlotId parameter, const Operand& whole, bool in_bytes = false) {
    dtype_ = in_bytes ? DType::u8 : whole.dtype;
    for (size_t rank = 0; rank < size; ++rank) {
      Piece piece = piece_of(whole, program.cuts[static_cast<size_t>(parameter)], static_cast<int>(rank));
      if (in_bytes) piece.elements *= bytes_of(whole.dtype);
      if (piece.elements > 0) parts_[rank].push_back(piece);
    }
  };
  const auto slot = [&](SlotId id) -> const Slot& { return program.slot(id); };
  switch (op_) {
    case Op::reduce_scatter: {
      const Ints& parameters = node.attrs.ints("parameters");
      for (size_t i = 0; i < parameters.size(); ++i) cut(static_cast<SlotId>(parameters[i]), call.in[i]);
      for (const Operand& part : call.writes) into_.push_back({part.data, part.elements()});
      adds_ = node.attrs.flag("adds");
      label_ = label_of("gradient." + slot(static_cast<SlotId>(parameters[0])).name, parameters.size());
      break;
    }
    case Op::all_gather: {
      const bool in_bytes = std::ranges::any_of(call.writes, [&](const Operand& whole) { return whole.dtype != call.writes[0].dtype; });
      for (size_t i = 0; i < node.writes.size(); ++i)
        cut(slot(node.writes[i]).role == Role::parameter ? node.writes[i] : slot(node.writes[i]).of, call.writes[i], in_bytes);
      own_ = call.reads;
      const SlotId first = slot(node.writes[0]).role == Role::gathered ? slot(node.writes[0]).of : node.writes[0];
      label_ = label_of(slot(first).name, node.writes.size());
      break;
    }
    case Op::rank_sums: {
      adds_ = node.attrs.flag("adds");
      const size_t terms = call.in.size();
      gathered_.resize(terms * size);
      dtype_ = DType::f64;
      for (size_t rank = 0; rank < size; ++rank) parts_[rank].push_back({gathered_.data() + rank * terms, static_cast<int64_t>(terms)});
      for (const Operand& term : call.in) terms_.push_back(term.as<double>());
      for (const Operand& sum : call.writes) sums_.push_back(sum.as<double>());
      label_ = slot(node.writes[0]).name;
      break;
    }
    case Op::gather_squares: {
      const Operand& all = call.writes[0];
      dtype_ = DType::f64;
      int64_t first = 0;
      for (const int64_t id : node.attrs.ints("parameters")) {
        const auto parameter = static_cast<SlotId>(id);
        for (size_t rank = 0; rank < size; ++rank) {
          const auto r = static_cast<int32_t>(rank);
          if (const int64_t blocks = norm_blocks(piece_elements(program, parameter, r)); blocks > 0)
            parts_[rank].push_back({all.as<double>() + first + piece_begin(program, parameter, r) / kCutGrain, blocks});
        }
        first += norm_blocks(slot(parameter).whole_shape().elements());
      }
      squares_ = call.in[0].as<const double>();
      label_ = slot(node.writes[0]).name;
      break;
    }
    default:
      fail(Code::internal, text("exchange: ", name_of(op_), " is not a collective"));
  }
  for (const auto& part : parts_) views_.emplace_back(part);
}

void PlannedExchange::run(const Contributors& contributors) {
  const int count = is_once_a_step_ ? contributors.in_step : contributors.in_round;
  switch (op_) {
    case Op::reduce_scatter:
      return ranks_.reduce_shards(views_, into_, dtype_, count, adds_, label_);
    case Op::rank_sums:
      return sum_terms(count);
    case Op::gather_squares:
      place_squares();
      return ranks_.gather_shards(views_, dtype_, label_);
    case Op::all_gather:
      place_own_pieces();
      [[fallthrough]];
    default:
      return ranks_.gather_shards(views_, dtype_, label_);
  }
}

/// This rank's, from where they lie, among those of all.
void PlannedExchange::place_own_pieces() {
  auto to = parts_[static_cast<size_t>(ranks_.rank())].begin();
  for (const Operand& own : own_) std::memcpy((to++)->data, own.data, static_cast<size_t>(own.elements() * bytes_of(own.dtype)));
}

/// This rank's, among those of all.
void PlannedExchange::place_squares() {
  const double* from = squares_;
  for (const Piece& piece : parts_[static_cast<size_t>(ranks_.rank())]) {
    std::copy_n(from, piece.elements, static_cast<double*>(piece.data));
    from += piece.elements;
  }
}

void PlannedExchange::sum_terms(int contributors) {
  const size_t terms = terms_.size();
  for (size_t i = 0; i < terms; ++i) gathered_[static_cast<size_t>(ranks_.rank()) * terms + i] = *terms_[i];
  ranks_.gather_shards(views_, dtype_, label_);
  for (int rank = 0; rank < contributors; ++rank)
    for (size_t i = 0; i < terms; ++i) {
      const double term = gathered_[static_cast<size_t>(rank) * terms + i];
      *sums_[i] = rank == 0 && !adds_ ? term : *sums_[i] + term;
    }
}

}  // namespace st
