#include "exec/network_exchange.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/combine.h"
#include "base/error.h"
#include "exec/connected_devices.h"
#include "ir/memory.h"
#include "plan/exchange_memory.h"

namespace st {
namespace {

/// The bytes that a copy of these pieces takes, each at an aligned place.
int64_t bytes_of_copy(const DevicePieces& pieces, int64_t width) {
  int64_t bytes = 0;
  for (const DevicePiece& piece : pieces) bytes += align_up(piece.elements * width);
  return bytes;
}

}  // namespace

TermRoom::TermRoom(Backend& backend, int64_t bytes) : memory_(bytes == 0 ? nullptr : backend.allocate(bytes, MemoryRole::buckets)) {}

Address TermRoom::begin(int64_t needed) const {
  require(needed <= bytes(), Code::internal, "exchange: terms of ", needed, " bytes come from other ranks, the plan has ", bytes());
  return memory_ ? memory_->data() : Address{};
}

NetworkExchange::NetworkExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                                 Backend& backend, Stream& computing, TermRoom* room)
    : DeviceCollective(exchange, program, call, ranks, backend, false),
      computing_(computing),
      name_(ranks.devices()->name()),
      next_(static_cast<size_t>(ranks.size())),
      places_(next_.size()),
      terms_(next_.size()),
      room_(room == nullptr ? own_room_.emplace(backend, exchange_memory(exchange, program, ranks.rank(), ranks.size())) : *room),
      is_done_(backend.make_event()) {}

NetworkExchange::~NetworkExchange() = default;

// The collectives.

bool NetworkExchange::reduce(Stream& stream, const Round& round, int contributors, bool adds) {
  if (is_fast_ && contributors == size()) return reduce_fast(stream, round, adds);
  begin();
  const DevicePieces& own = parts()[static_cast<size_t>(rank())];
  receive_terms(own, contributors);
  for (int step = 1; step < size() && rank() < contributors; ++step) {
    const int owner = (rank() + step) % size();
    send(owner, parts()[static_cast<size_t>(owner)]);
  }
  meet(stream, round, [&] { fold(stream, std::span(terms_).first(static_cast<size_t>(contributors)), adds); });
  return true;
}

bool NetworkExchange::gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) {
  if (is_fast_) return gather_fast(stream, round, parts);
  begin();
  for (int step = 1; step < size(); ++step) {
    const int other = (rank() + step) % size();
    send(other, parts[static_cast<size_t>(rank())]);
    receive(other, parts[static_cast<size_t>(other)]);
  }
  meet(stream, round, [] {});
  return true;
}

bool NetworkExchange::sum_all(Stream& stream, const Round& round, int contributors, bool adds) {
  if (is_fast_) return sum_all_fast(stream, round);
  begin();
  receive_terms(parts()[0], size());
  for (int step = 1; step < size(); ++step) send((rank() + step) % size(), parts()[0]);
  meet(stream, round, [&] { fold(stream, std::span(terms_).first(static_cast<size_t>(contributors)), adds); });
  return true;
}

void NetworkExchange::begin() {
  sends_.clear();
  receives_.clear();
  natives_.clear();
}

void NetworkExchange::send(int to, const DevicePieces& pieces) {
  for (const DevicePiece& piece : pieces) sends_.push_back({to, piece.data, piece.elements * bytes_of(dtype_)});
}

void NetworkExchange::receive(int from, const DevicePieces& pieces) {
  for (const DevicePiece& piece : pieces) receives_.push_back({from, piece.data, piece.elements * bytes_of(dtype_)});
}

/// Receives the first ranks' terms of these pieces into memory of its own; this rank's term stays where it lies.
void NetworkExchange::receive_terms(const DevicePieces& own, int ranks) {
  Address at = room_.begin(bytes_of_copy(own, bytes_of(dtype_)) * (size() - 1));
  for (int from = 0; from < ranks; ++from) {
    const auto index = static_cast<size_t>(from);
    terms_[index] = from == rank() ? &own : &place_arrived(own, index, at);
    if (from != rank()) receive(from, *terms_[index]);
  }
}

/// Places for a rank's terms, as `own` is cut, from `at` on; advances `at` past them.
const DevicePieces& NetworkExchange::place_arrived(const DevicePieces& own, size_t rank, Address& at) {
  DevicePieces& places = places_[rank];
  places.clear();
  for (const DevicePiece& piece : own) {
    places.push_back({at, piece.elements});
    at += align_up(piece.elements * bytes_of(dtype_));
  }
  return places;
}

// The network's own collectives.

bool NetworkExchange::reduce_fast(Stream& stream, const Round& round, bool adds) {
  require(!overwrites_terms(), Code::internal, "exchange: sums of a fast collective lie in what it reads");
  begin();
  const DevicePieces& own = parts()[static_cast<size_t>(rank())];
  const bool in_place = is_reduced_in_place(adds);
  if (!in_place) {
    Address at = room_.begin(bytes_of_copy(own, bytes_of(dtype_)));
    terms_[0] = &place_arrived(own, static_cast<size_t>(rank()), at);
  }
  const DevicePieces& to = in_place ? sums() : *terms_[0];
  each_call(
      parts(),
      [&](Address whole, size_t own_piece, int64_t elements) {
        natives_.push_back({Native::Kind::reduce_scatter, whole, to[own_piece].data, elements, dtype_});
      },
      [&](const DevicePiece& piece, size_t number, int owner) {
        const Address sum = owner == rank() ? to[number].data : piece.data;  // which others do not write
        natives_.push_back({Native::Kind::reduce, piece.data, sum, piece.elements, dtype_, owner});
      });
  meet(stream, round, [&] {
    if (!in_place) fold(stream, std::span(terms_).first(1), adds);
  });
  return true;
}

/// Whether the network writes the sums where they belong: it overwrites, in the type of the terms.
bool NetworkExchange::is_reduced_in_place(bool adds) const {
  const auto is_like = [](const DevicePiece& a, const DevicePiece& b) { return a.elements == b.elements; };
  return !adds && sum_bytes_of(dtype_, sum_type()) == bytes_of(dtype_) &&
         std::ranges::equal(sums(), parts()[static_cast<size_t>(rank())], is_like);
}

bool NetworkExchange::gather_fast(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) {
  begin();
  const DevicePieces& own = parts[static_cast<size_t>(rank())];
  each_call(
      parts,
      [&](Address whole, size_t own_piece, int64_t elements) {
        natives_.push_back({Native::Kind::all_gather, own[own_piece].data, whole, elements * bytes_of(dtype_), DType::u8});
      },
      [&](const DevicePiece& piece, size_t /*number*/, int owner) {
        natives_.push_back({Native::Kind::broadcast, piece.data, piece.data, piece.elements * bytes_of(dtype_), DType::u8, owner});
      });
  meet(stream, round, [] {});
  return true;
}

bool NetworkExchange::sum_all_fast(Stream& stream, const Round& round) {
  begin();
  if (!sums().empty()) natives_.push_back({Native::Kind::all_reduce, parts()[0][0].data, sums()[0].data, sums()[0].elements, dtype_});
  meet(stream, round, [] {});
  return true;
}

/// The calls for pieces that ranks own, in one order on all ranks. even(where the whole begins, number of this rank's piece, elements of
/// each rank): a tensor of which each rank has an equal part, in rank order. single(piece, its number among its owner's, owner): the other
/// pieces.
template <class Even, class Single>
void NetworkExchange::each_call(const std::vector<DevicePieces>& parts, const Even& even, const Single& single) {
  const auto ranks = static_cast<size_t>(size());
  std::ranges::fill(next_, 0);
  const auto has = [&](size_t owner, int32_t tensor) {
    return next_[owner] < parts[owner].size() && parts[owner][next_[owner]].tensor == tensor;
  };
  const auto is_done = [&] {
    for (size_t owner = 0; owner < ranks; ++owner)
      if (next_[owner] < parts[owner].size()) return false;
    return true;
  };
  for (int32_t tensor = 0; !is_done(); ++tensor) {
    if (is_even(parts, tensor)) {
      even(parts[0][next_[0]].data, next_[static_cast<size_t>(rank())], parts[0][next_[0]].elements);
      for (size_t owner = 0; owner < ranks; ++owner) ++next_[owner];
      continue;
    }
    for (size_t owner = 0; owner < ranks; ++owner)
      for (; has(owner, tensor); ++next_[owner]) single(parts[owner][next_[owner]], next_[owner], static_cast<int>(owner));
  }
}

/// Whether each rank has one piece of a tensor, all of one length and next to each other.
bool NetworkExchange::is_even(const std::vector<DevicePieces>& parts, int32_t tensor) const {
  for (size_t owner = 0; owner < next_.size(); ++owner) {
    const DevicePieces& pieces = parts[owner];
    const size_t at = next_[owner];
    if (at >= pieces.size() || pieces[at].tensor != tensor) return false;
    if (at + 1 < pieces.size() && pieces[at + 1].tensor == tensor) return false;
    const DevicePiece& first = parts[0][next_[0]];
    const int64_t offset = static_cast<int64_t>(owner) * first.elements * bytes_of(dtype_);
    if (pieces[at].elements != first.elements || !(pieces[at].data == first.data + offset)) return false;
  }
  return true;
}

/// `then`: gives work that needs what has come.
template <class Then>
void NetworkExchange::meet(Stream& stream, const Round& round, const Then& then) {
  ConnectedDevices& devices = ConnectedDevices::of(ranks_);
  // The deadline is for the exchange alone, so wait first for all that the device computes before it.
  stream.record(*is_done_);
  is_done_->wait();
  HeldTurn turn(devices.turn());  // given back after an abort
  try {
    const auto has_turn = [&] { return turn.take(); };
    const auto is_given = [&] { return devices.is_ready(); };
    const auto is_done = [&] { return devices.has_run(*is_done_); };
    const auto exchange = [&](std::span<const uint64_t>) {
      ranks_.await(name_, std::ref(has_turn));
      natives_.empty() ? devices.exchange(stream, sends_, receives_) : devices.run_native(stream, natives_);
      ranks_.await(name_, std::ref(is_given));
      then();
      stream.record(*is_done_);
      ranks_.await(name_, std::ref(is_done));
      return round.sent;
    };
    ranks_.meet(round.call, round.detail, 0, std::ref(exchange));  // references: std::function would allocate for the captures
  } catch (...) {
    computing_.halt_updates();  // what is given already may read what the abort leaves half written
    devices.abort();
    throw;
  }
}

}  // namespace st
