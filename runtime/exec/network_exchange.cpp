#include "exec/network_exchange.h"

#include <functional>
#include <utility>

#include "exec/connected_devices.h"
#include "ir/memory.h"

namespace st {

NetworkExchange::NetworkExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                                 Backend& backend)
    : DeviceCollective(exchange, program, call, ranks, backend),
      name_(ranks.devices()->name()),
      places_(static_cast<size_t>(ranks.size())),
      terms_(places_.size()),
      is_done_(backend.make_event()) {}

NetworkExchange::~NetworkExchange() = default;

// The collectives.

bool NetworkExchange::reduce(Stream& stream, const Round& round, int contributors, bool adds) {
  begin();
  const DevicePieces& own = parts()[static_cast<size_t>(rank())];
  receive_terms(stream, own, contributors);
  for (int step = 1; step < size() && rank() < contributors; ++step) {
    const int owner = (rank() + step) % size();
    send(owner, parts()[static_cast<size_t>(owner)]);
  }
  meet(stream, round, [&] { fold(stream, std::span(terms_).first(static_cast<size_t>(contributors)), adds); });
  return true;
}

bool NetworkExchange::gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) {
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
  begin();
  receive_terms(stream, parts()[0], size());
  for (int step = 1; step < size(); ++step) send((rank() + step) % size(), parts()[0]);
  meet(stream, round, [&] { fold(stream, std::span(terms_).first(static_cast<size_t>(contributors)), adds); });
  return true;
}

void NetworkExchange::begin() {
  sends_.clear();
  receives_.clear();
}

void NetworkExchange::send(int to, const DevicePieces& pieces) {
  for (const DevicePiece& piece : pieces) sends_.push_back({to, piece.data, piece.elements * bytes_of(dtype_)});
}

void NetworkExchange::receive(int from, const DevicePieces& pieces) {
  for (const DevicePiece& piece : pieces) receives_.push_back({from, piece.data, piece.elements * bytes_of(dtype_)});
}

/// Receives the first ranks' terms of these pieces into memory of its own; this rank's term stays where it lies.
void NetworkExchange::receive_terms(Stream& stream, const DevicePieces& own, int ranks) {
  const int64_t width = bytes_of(dtype_);
  int64_t of_rank = 0;
  for (const DevicePiece& piece : own) of_rank += align_up(piece.elements * width);
  if (const int64_t needed = of_rank * (size() - 1); needed > 0 && (!arrived_ || arrived_->size() < needed)) {
    stream.finish();  // what it was may be in use
    arrived_ = backend_.allocate(needed, MemoryRole::inputs);
  }
  Address at = arrived_ ? arrived_->data() : Address{};
  for (int from = 0; from < ranks; ++from) {
    const auto index = static_cast<size_t>(from);
    terms_[index] = from == rank() ? &own : &places_[index];
    if (from == rank()) continue;
    places_[index].clear();
    for (const DevicePiece& piece : own) {
      places_[index].push_back({at, piece.elements});
      at += align_up(piece.elements * width);
    }
    receive(from, places_[index]);
  }
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
    const auto is_done = [&] { return devices.is_ready() && is_done_->has_passed(); };
    const auto exchange = [&](std::span<const uint64_t>) {
      ranks_.await(name_, std::ref(has_turn));
      devices.exchange(stream, sends_, receives_);
      ranks_.await(name_, std::ref(is_given));
      then();
      stream.record(*is_done_);
      ranks_.await(name_, std::ref(is_done));
      return round.sent;
    };
    ranks_.meet(round.call, round.detail, 0, std::ref(exchange));  // references: std::function would allocate for the captures
  } catch (...) {
    devices.abort();
    throw;
  }
}

}  // namespace st
