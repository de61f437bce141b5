#include "exec/device_collective.h"

#include <algorithm>

#include "base/combine.h"
#include "base/error.h"
#include "comm/call_checks.h"
#include "exec/device_operands.h"
#include "ir/memory.h"

namespace st {
namespace {

bool overlaps(const DevicePiece& a, int64_t width_of_a, const DevicePiece& b, int64_t width_of_b) {
  return a.data < b.data + b.elements * width_of_b && b.data < a.data + a.elements * width_of_a;
}

/// As staged_memory() plans it.
int64_t overwritten_terms(const ExchangePlan& exchange, const Call& call) {
  if (exchange.op != Op::rank_sums) return 0;
  int64_t bytes = 0;
  for (const Operand& term : call.in) {
    const auto is_over = [&](const Operand& sum) { return sum.data == term.data && sum.elements() > 0; };
    if (std::ranges::any_of(call.writes, is_over)) bytes += align_up(term.elements() * bytes_of(term.dtype));
  }
  return bytes;
}

}  // namespace

DeviceCollective::DeviceCollective(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                                   Backend& backend, bool are_read_late)
    : ranks_(ranks),
      backend_(backend),
      dtype_(exchange.dtype),
      is_fast_(exchange.is_fast),
      is_whole_(is_of_whole_terms(exchange)),
      exchange_(exchange),
      program_(program),
      call_(call),
      label_(exchange.label),
      walks_(static_cast<size_t>(ranks.size()) + 1),
      addresses_(static_cast<size_t>(ranks.size())),
      are_read_late_(are_read_late) {
  if (const int64_t bytes = overwritten_terms(exchange, call); bytes > 0 && are_read_late)
    staged_ = backend.allocate(bytes, MemoryRole::buckets);
}

DeviceCollective::~DeviceCollective() = default;

int64_t DeviceCollective::length_of(const DevicePieces& pieces) {
  int64_t length = 0;
  for (const DevicePiece& piece : pieces) length += piece.elements;
  return length;
}

// Where everything lies.

void DeviceCollective::place_now(Stream& stream) {
  require_on_device(backend_, call_, exchange_.op, label_);
  parts_.assign(is_whole_ ? 1 : static_cast<size_t>(size()), {});
  sum_parts_.clear();
  into_.clear();
  copies_.clear();
  const auto add = [](std::span<const Operand> operands, DevicePieces& pieces) {
    for (const Operand& operand : operands)
      if (operand.elements() > 0) pieces.push_back({operand.data, operand.elements()});
  };
  switch (exchange_.op) {
    case Op::reduce_scatter:
      place_parts(call_.in);
      add(call_.writes, into_);
      break;
    case Op::all_gather:
      place_parts(call_.writes);
      place_own(call_.reads);
      break;
    case Op::gather_squares:
      place_parts(call_.writes);
      place_own(call_.in);
      break;
    case Op::tensor_gather:
      place_rows(call_.out[0]);
      place_own(call_.in);
      break;
    case Op::tensor_scatter:
      place_rows(call_.in[0]);
      add(call_.out, into_);
      break;
    case Op::rank_sums:
      add(call_.in, parts_[0]);
      add(call_.writes, into_);
      break;
    default:
      require(exchange_.op == Op::tensor_sum, Code::internal, "exchange: ", name_of(exchange_.op), " is not a collective");
      if (is_whole_) {
        add(call_.in, parts_[0]);
        add(call_.out, into_);
        break;
      }
      sum_parts_.assign(parts_.size(), {});
      place_shares(call_.in[0], parts_);
      place_shares(call_.out[0], sum_parts_);
      into_ = sum_parts_[static_cast<size_t>(rank())];
  }
  stage(stream);
  is_placed_ = true;
}

void DeviceCollective::place_parts(std::span<const Operand> operands) {
  int32_t number = 0;
  for (const ExchangePlan::Tensor& tensor : exchange_.tensors) {
    for (size_t owner = 0; owner < parts_.size(); ++owner) {
      const Address whole = operands[static_cast<size_t>(tensor.operand)].data;
      each_part_of(exchange_, tensor, program_, static_cast<int32_t>(owner), [&](int64_t begin, int64_t elements) {
        parts_[owner].push_back({whole + begin * tensor.bytes, elements * tensor.bytes / bytes_of(dtype_), number});
      });
    }
    ++number;
  }
}

/// The ranks' rows of a value, one run each.
void DeviceCollective::place_rows(const Operand& whole) {
  const int64_t own = whole.elements() / size();
  for (size_t owner = 0; owner < parts_.size(); ++owner)
    parts_[owner].push_back({whole.data + static_cast<int64_t>(owner) * own * bytes_of(dtype_), own});
}

void DeviceCollective::place_shares(const Operand& whole, std::vector<DevicePieces>& parts) const {
  for (int owner = 0; owner < size(); ++owner) {
    const int64_t first = ranks_.share(exchange_.elements, owner), count = ranks_.share(exchange_.elements, owner + 1) - first;
    if (count > 0) parts[static_cast<size_t>(owner)].push_back({whole.data + first * bytes_of(dtype_), count});
  }
}

/// This rank's elements, from where they lie, go among those of all.
void DeviceCollective::place_own(std::span<const Operand> own) {
  auto to = parts_[static_cast<size_t>(rank())].begin();
  for (const Operand& from : own)
    for (int64_t at = 0, bytes = from.elements() * bytes_of(from.dtype); at < bytes; ++to) {
      const int64_t part = to->elements * bytes_of(dtype_);
      copies_.push_back({to->data, from.data + at, part});
      at += part;
    }
}

bool DeviceCollective::is_read_by_others(size_t part) const { return is_whole_ || part != static_cast<size_t>(rank()); }

/// Where sums lie in what other ranks read, which may read late, that is copied first.
void DeviceCollective::stage(Stream& stream) {
  const int64_t width = bytes_of(dtype_), sum_width = sum_bytes_of(dtype_, exchange_.sums);
  const auto is_overwritten = [&](const DevicePiece& piece) {
    return std::ranges::any_of(into_, [&](const DevicePiece& sums) { return overlaps(piece, width, sums, sum_width); });
  };
  std::vector<DevicePiece*> pieces;
  int64_t bytes = 0;
  for (size_t part = 0; part < parts_.size(); ++part)
    for (DevicePiece& piece : parts_[part])
      if (is_read_by_others(part) && is_overwritten(piece)) {
        pieces.push_back(&piece);
        bytes += align_up(piece.elements * width);
      }
  overwrites_terms_ = bytes > 0;
  if (!overwrites_terms_ || !are_read_late_) return;
  if (bytes > this->DeviceCollective::bytes()) {
    stream.finish();  // what it was may be in use
    staged_ = backend_.allocate(bytes, MemoryRole::buckets);
  }
  Address to = staged_->data();
  for (DevicePiece* const piece : pieces) {
    copies_.push_back({to, piece->data, piece->elements * width});
    piece->data = to;
    to += align_up(piece->elements * width);
  }
}

// The collectives.

bool DeviceCollective::run(Stream& stream, int contributors) {
  if (!is_placed_) place_now(stream);
  for (const Copy& copy : copies_) stream.copy(copy.to, copy.from, copy.bytes);
  switch (exchange_.op) {
    case Op::reduce_scatter:
      return reduce(stream, reduction(contributors), contributors, exchange_.adds);
    case Op::tensor_scatter:
      return reduce(stream, reduction(contributors), contributors, false);
    case Op::rank_sums:
      return sum_all(stream, terms(), contributors, exchange_.adds);
    case Op::tensor_sum:
      if (is_whole_) return sum_all(stream, is_fast_ ? whole_sum() : terms(), size(), false);
      return reduce(stream, reduction(size()), size(), false) && gather(stream, gathering(sum_parts_), sum_parts_);
    default:
      return gather(stream, gathering(parts_), parts_);
  }
}

DeviceCollective::Round DeviceCollective::reduction(int contributors) const {
  Round round{{Collective::reduce_scatter, ReduceOp::sum, dtype_, 0, -1, label_}};
  AlikeOnAll detail;
  detail.add(contributors).add(is_fast_ ? 1 : 0);
  for (size_t owner = 0; owner < parts_.size(); ++owner) {
    const int64_t length = length_of(parts_[owner]);
    round.call.elements += length;
    detail.add(length);
    if (owner != static_cast<size_t>(rank()) && rank() < contributors) round.sent += length * bytes_of(dtype_);
  }
  round.detail = detail.value();
  return round;
}

DeviceCollective::Round DeviceCollective::gathering(const std::vector<DevicePieces>& parts) const {
  Round round{{Collective::all_gather, ReduceOp::sum, dtype_, 0, -1, label_}};
  AlikeOnAll detail;
  for (const DevicePieces& part : parts) {
    round.call.elements += length_of(part);
    detail.add(length_of(part));
  }
  round.detail = detail.value();
  round.sent = (size() - 1) * length_of(parts[static_cast<size_t>(rank())]) * bytes_of(dtype_);
  return round;
}

DeviceCollective::Round DeviceCollective::terms() const {
  const int64_t own = length_of(parts_[0]);
  return {{Collective::all_gather, ReduceOp::sum, dtype_, own * size(), -1, label_},
          AlikeOnAll().add(own).value(),
          (size() - 1) * own * bytes_of(dtype_)};
}

/// A sum that the network makes, in the traffic of a ring: what other ranks own goes out, then the rank's own part to each of them.
DeviceCollective::Round DeviceCollective::whole_sum() const {
  const int64_t all = length_of(parts_[0]), own = ranks_.share(all, rank() + 1) - ranks_.share(all, rank());
  return {{Collective::all_reduce, ReduceOp::sum, dtype_, all, -1, label_},
          AlikeOnAll().add(all).value(),
          ((all - own) + (size() - 1) * own) * bytes_of(dtype_)};
}

void DeviceCollective::fold(Stream& stream, std::span<const DevicePieces* const> terms, bool adds) {
  const std::span<Walk> from = std::span(walks_).first(terms.size());
  for (size_t rank = 0; rank < from.size(); ++rank) from[rank].start(*terms[rank], bytes_of(dtype_));
  Walk& to = walks_.back();
  to.start(into_, sum_bytes_of(dtype_, exchange_.sums));
  while (!to.pieces.empty()) {
    int64_t count = to.together();
    for (const Walk& walk : from) count = std::min(count, walk.together());
    for (size_t rank = 0; rank < from.size(); ++rank) addresses_[rank] = from[rank].take(count);
    backend_.fold(stream, {std::span(addresses_).first(from.size()), to.take(count), dtype_, count, adds, exchange_.sums});
  }
}

}  // namespace st
