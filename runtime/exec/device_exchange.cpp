#include "exec/device_exchange.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/call_checks.h"
#include "exec/device_operands.h"
#include "ir/memory.h"

namespace st {
namespace {

int64_t length_of(const DevicePieces& pieces) {
  int64_t length = 0;
  for (const DevicePiece& piece : pieces) length += piece.elements;
  return length;
}

bool overlaps(const DevicePiece& a, int64_t width_of_a, const DevicePiece& b, int64_t width_of_b) {
  return a.data < b.data + b.elements * width_of_b && b.data < a.data + a.elements * width_of_a;
}

/// Bytes of a sum of floating-point terms.
int64_t sum_width(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

}  // namespace

/// Goes through the elements of a list of pieces in contiguous runs.
struct DeviceExchange::Walk {
  std::span<const DevicePiece> pieces;  // those that are left
  int64_t width = 0, done = 0;

  void start(const DevicePieces& all, int64_t bytes) {
    pieces = all;
    width = bytes;
    done = 0;
    skip_empty();
  }
  int64_t together() const { return pieces.front().elements - done; }
  Address take(int64_t elements) {
    const Address place = pieces.front().data + done * width;
    done += elements;
    skip_empty();
    return place;
  }
  void skip_empty() {
    for (; !pieces.empty() && done == pieces.front().elements; done = 0) pieces = pieces.subspan(1);
  }
};

DeviceExchange::DeviceExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                               Backend& backend)
    : exchange_(exchange),
      program_(program),
      call_(call),
      ranks_(ranks),
      backend_(backend),
      label_(exchange.label),
      dtype_(exchange.dtype),
      is_whole_(exchange.op == Op::rank_sums ||
                (exchange.op == Op::tensor_sum && exchange.elements * bytes_of(exchange.dtype) <= kSummedAtOnce)),
      offer_(DeviceOffer::make(backend, ranks.size())),
      offers_(static_cast<size_t>(ranks.size())),
      walks_(offers_.size() + 1),
      terms_(offers_.size()) {}

DeviceExchange::~DeviceExchange() = default;

// Where everything lies.

void DeviceExchange::place_now(Stream& stream) {
  require_on_device(backend_, call_, exchange_.op, label_);
  parts_.assign(is_whole_ ? 1 : offers_.size(), {});
  sum_parts_.clear();
  into_.clear();
  copies_.clear();
  const auto add = [](std::span<const Operand> operands, DevicePieces& pieces) {
    for (const Operand& operand : operands) pieces.push_back({operand.data, operand.elements()});
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
      sum_parts_.assign(offers_.size(), {});
      place_shares(call_.in[0], parts_);
      place_shares(call_.out[0], sum_parts_);
      into_ = sum_parts_[static_cast<size_t>(rank())];
  }
  stage(stream);
  is_placed_ = true;
}

void DeviceExchange::place_parts(std::span<const Operand> operands) {
  for (const ExchangePlan::Tensor& tensor : exchange_.tensors)
    for (size_t owner = 0; owner < parts_.size(); ++owner) {
      const Address whole = operands[static_cast<size_t>(tensor.operand)].data;
      each_part_of(exchange_, tensor, program_, static_cast<int32_t>(owner), [&](int64_t begin, int64_t elements) {
        parts_[owner].push_back({whole + begin * tensor.bytes, elements * tensor.bytes / bytes_of(dtype_)});
      });
    }
}

/// The ranks' rows of a value, one run each.
void DeviceExchange::place_rows(const Operand& whole) {
  const int64_t own = whole.elements() / size();
  for (size_t owner = 0; owner < parts_.size(); ++owner)
    parts_[owner].push_back({whole.data + static_cast<int64_t>(owner) * own * bytes_of(dtype_), own});
}

void DeviceExchange::place_shares(const Operand& whole, std::vector<DevicePieces>& parts) const {
  for (int owner = 0; owner < size(); ++owner) {
    const int64_t first = ranks_.share(exchange_.elements, owner), count = ranks_.share(exchange_.elements, owner + 1) - first;
    if (count > 0) parts[static_cast<size_t>(owner)].push_back({whole.data + first * bytes_of(dtype_), count});
  }
}

/// This rank's elements, from where they lie, go among those of all.
void DeviceExchange::place_own(std::span<const Operand> own) {
  auto to = parts_[static_cast<size_t>(rank())].begin();
  for (const Operand& from : own)
    for (int64_t at = 0, bytes = from.elements() * bytes_of(from.dtype); at < bytes; ++to) {
      const int64_t part = to->elements * bytes_of(dtype_);
      copies_.push_back({to->data, from.data + at, part});
      at += part;
    }
}

bool DeviceExchange::is_read_by_others(size_t part) const { return is_whole_ || part != static_cast<size_t>(rank()); }

/// Where sums lie in what other ranks read, which may read late, that is copied first.
void DeviceExchange::stage(Stream& stream) {
  const int64_t width = bytes_of(dtype_);
  const auto is_overwritten = [&](const DevicePiece& piece) {
    return std::ranges::any_of(into_, [&](const DevicePiece& sums) { return overlaps(piece, width, sums, sum_width(dtype_)); });
  };
  std::vector<DevicePiece*> pieces;
  int64_t bytes = 0;
  for (size_t part = 0; part < parts_.size(); ++part)
    for (DevicePiece& piece : parts_[part])
      if (is_read_by_others(part) && is_overwritten(piece)) {
        pieces.push_back(&piece);
        bytes += align_up(piece.elements * width);
      }
  if (bytes == 0) return;
  if (bytes > this->bytes()) {
    stream.finish();  // what it was may be in use
    staged_ = backend_.allocate(bytes, MemoryRole::inputs);
  }
  Address to = staged_->data();
  for (DevicePiece* const piece : pieces) {
    copies_.push_back({to, piece->data, piece->elements * width});
    piece->data = to;
    to += align_up(piece->elements * width);
  }
}

// The collectives.

bool DeviceExchange::run(Stream& stream, int contributors) {
  if (!is_placed_) place_now(stream);
  for (const Copy& copy : copies_) stream.copy(copy.to, copy.from, copy.bytes);
  switch (exchange_.op) {
    case Op::reduce_scatter:
      return reduce(stream, contributors, exchange_.adds);
    case Op::tensor_scatter:
      return reduce(stream, contributors, false);
    case Op::rank_sums:
      return sum_all(stream, contributors, exchange_.adds);
    case Op::tensor_sum:
      if (is_whole_) return sum_all(stream, size(), false);
      return reduce(stream, size(), false) && gather(stream, sum_parts_);
    default:
      return gather(stream, parts_);
  }
}

/// Each rank sums the elements that it owns.
bool DeviceExchange::reduce(Stream& stream, int contributors, bool adds) {
  CollectiveCall call{Collective::reduce_scatter, ReduceOp::sum, dtype_, 0, -1, label_};
  AlikeOnAll detail;
  detail.add(contributors);
  const auto own = static_cast<size_t>(rank());
  int64_t sent = 0;
  for (size_t owner = 0; owner < parts_.size(); ++owner) {
    const int64_t length = length_of(parts_[owner]);
    call.elements += length;
    detail.add(length);
    if (owner != own && rank() < contributors) sent += length * bytes_of(dtype_);
  }
  return meet(stream, call, detail.value(), sent, parts_, [&](Offers offers) { fold(stream, offers, own, contributors, adds); });
}

/// Each rank gets the elements of all, its own being among `parts`.
bool DeviceExchange::gather(Stream& stream, const std::vector<DevicePieces>& parts) {
  CollectiveCall call{Collective::all_gather, ReduceOp::sum, dtype_, 0, -1, label_};
  AlikeOnAll detail;
  for (const DevicePieces& part : parts) {
    call.elements += length_of(part);
    detail.add(length_of(part));
  }
  const int64_t width = bytes_of(dtype_), sent = (size() - 1) * length_of(parts[static_cast<size_t>(rank())]) * width;
  return meet(stream, call, detail.value(), sent, parts, [&](Offers offers) {
    for (int step = 1; step < size(); ++step) {
      const auto owner = static_cast<size_t>((rank() + step) % size());
      Walk &from = walks_[0], &to = walks_[1];
      from.start(offers[owner]->part(owner), width);
      to.start(parts[owner], width);
      while (!to.pieces.empty()) {
        const int64_t count = std::min(from.together(), to.together());
        const Address here = to.take(count);
        stream.copy(here, from.take(count), count * width);
      }
    }
  });
}

/// Each rank gets the terms of all and sums them.
bool DeviceExchange::sum_all(Stream& stream, int contributors, bool adds) {
  const int64_t own = length_of(parts_[0]);
  const CollectiveCall call{Collective::all_gather, ReduceOp::sum, dtype_, own * size(), -1, label_};
  return meet(stream, call, AlikeOnAll().add(own).value(), (size() - 1) * own * bytes_of(dtype_), parts_,
              [&](Offers offers) { fold(stream, offers, 0, contributors, adds); });
}

/// Into this rank's sums, in rank order.
void DeviceExchange::fold(Stream& stream, Offers offers, size_t part, int contributors, bool adds) {
  const std::span<Walk> from = std::span(walks_).first(static_cast<size_t>(contributors));
  for (size_t rank = 0; rank < from.size(); ++rank) from[rank].start(offers[rank]->part(part), bytes_of(dtype_));
  Walk& to = walks_.back();
  to.start(into_, sum_width(dtype_));
  while (!to.pieces.empty()) {
    int64_t count = to.together();
    for (const Walk& walk : from) count = std::min(count, walk.together());
    for (size_t rank = 0; rank < from.size(); ++rank) terms_[rank] = from[rank].take(count);
    backend_.fold(stream, {std::span(terms_).first(from.size()), to.take(count), dtype_, count, adds});
  }
}

// Meeting the other ranks.

template <class Give>
bool DeviceExchange::meet(Stream& stream, const CollectiveCall& call, uint64_t detail, int64_t sent, std::span<const DevicePieces> parts,
                          const Give& give) {
  offer_->open(parts);
  stream.record(*offer_->is_written);
  is_withdrawn_ = false;
  try {
    const auto exchange = [&](std::span<const uint64_t> numbers) {
      is_shared_ = find_offers(numbers);
      if (is_shared_ && !is_withdrawn_) read_offers(stream, give);
      return is_shared_ ? sent : 0;
    };
    ranks_.meet(call, detail, offer_->number(), std::ref(exchange));  // a reference: std::function would allocate for the captures
    if (is_withdrawn_) fail(Code::rank_failed, text(text_of(call), ": another rank has left it, and the group has ended"));
  } catch (...) {
    offer_->withdraw();
    throw;
  }
  if (!is_shared_) return false;
  for (const auto& other : offers_)
    if (other != offer_) stream.wait(*other->is_read);
  return true;
}

/// Whether all ranks offer memory of this device.
bool DeviceExchange::find_offers(std::span<const uint64_t> numbers) {
  bool is_shared = true;
  for (size_t rank = 0; rank < offers_.size(); ++rank) {
    std::shared_ptr<DeviceOffer>& offer = offers_[rank];
    if (!offer || offer->number() != numbers[rank]) offer = DeviceOffer::find(numbers[rank]);
    if (offer)
      is_shared = is_shared && &offer->backend() == &backend_;
    else
      is_withdrawn_ = true;
  }
  return is_shared;
}

template <class Give>
void DeviceExchange::read_offers(Stream& stream, const Give& give) {
  const auto others_until = [&](size_t end, const auto& each) {
    for (size_t i = 0; i < end; ++i)
      if (offers_[i] != offer_) each(*offers_[i]);
  };
  size_t read = 0;
  const auto end = [&] { others_until(read, [](DeviceOffer& other) { other.end_reading(); }); };
  for (; read < offers_.size() && !is_withdrawn_; ++read)
    if (offers_[read] != offer_ && !offers_[read]->begin_reading(rank(), offer_->is_read)) {
      is_withdrawn_ = true;
      break;
    }
  try {
    if (!is_withdrawn_) {
      others_until(read, [&](DeviceOffer& other) { stream.wait(*other.is_written); });
      give(offers_);
    }
    stream.record(*offer_->is_read);
  } catch (...) {
    stream.record(*offer_->is_read);
    end();
    throw;
  }
  end();
}

}  // namespace st
