#include "exec/device_exchange.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace st {

DeviceExchange::DeviceExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks,
                               Backend& backend)
    : DeviceCollective(exchange, program, call, ranks, backend, true),
      offer_(DeviceOffer::make(backend, ranks.size())),
      offers_(static_cast<size_t>(ranks.size())),
      terms_(offers_.size()) {}

DeviceExchange::~DeviceExchange() = default;

/// Each rank sums the elements that it owns.
bool DeviceExchange::reduce(Stream& stream, const Round& round, int contributors, bool adds) {
  return meet(stream, round, parts(), [&](Offers offers) { fold_offers(stream, offers, static_cast<size_t>(rank()), contributors, adds); });
}

/// Each rank gets the elements of all, its own being among `parts`.
bool DeviceExchange::gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) {
  const int64_t width = bytes_of(dtype_);
  return meet(stream, round, parts, [&](Offers offers) {
    for (int step = 1; step < size(); ++step) {
      const auto owner = static_cast<size_t>((rank() + step) % size());
      Walk from, to;
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
bool DeviceExchange::sum_all(Stream& stream, const Round& round, int contributors, bool adds) {
  return meet(stream, round, parts(), [&](Offers offers) { fold_offers(stream, offers, 0, contributors, adds); });
}

void DeviceExchange::fold_offers(Stream& stream, Offers offers, size_t part, int contributors, bool adds) {
  const auto count = static_cast<size_t>(contributors);
  for (size_t rank = 0; rank < count; ++rank) terms_[rank] = &offers[rank]->part(part);
  fold(stream, std::span(terms_).first(count), adds);
}

// Meeting the other ranks.

template <class Give>
bool DeviceExchange::meet(Stream& stream, const Round& round, std::span<const DevicePieces> parts, const Give& give) {
  offer_->open(parts);
  stream.record(*offer_->is_written);
  is_withdrawn_ = false;
  try {
    const auto exchange = [&](std::span<const uint64_t> numbers) {
      is_shared_ = find_offers(numbers);
      if (is_shared_ && !is_withdrawn_) read_offers(stream, give);
      return is_shared_ ? round.sent : 0;
    };
    ranks_.meet(round.call, round.detail, offer_->number(),
                std::ref(exchange));  // a reference: std::function would allocate for the captures
    if (is_withdrawn_) fail(Code::rank_failed, text(text_of(round.call), ": another rank has left it, and the group has ended"));
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
