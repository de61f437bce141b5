// The collectives of a plan between ranks that each have a device, whose memory a DeviceGroup moves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_group.h"
#include "exec/device_collective.h"

namespace st {

/// Memory of a device for what comes from other ranks as terms of sums. The exchanges of a plan use it in turn (exchange_memory).
class TermRoom {
 public:
  TermRoom(Backend& backend, int64_t bytes);
  /// Its begin, for an exchange that needs so many bytes.
  Address begin(int64_t needed) const;
  int64_t bytes() const { return memory_ ? memory_->size() : 0; }

 private:
  std::unique_ptr<Buffer> memory_;
};

/// One collective: the ranks meet on the host (Communicator::meet), which finds who does not come and who calls another one. Then all
/// sends and receives go to the stream together, and a fold of what has come, in the direct exchange's order of sums. The host polls until
/// the device has run them, so that whatever is given later finds the elements in place: a rank that ends, is silent, or whose exchange
/// fails is found there, within the deadline, and this rank ends its part, which nothing then reads.
///
/// A fast one (ExchangePlan::is_fast) is the network's own collective instead, or several in one operation; a fold adds its sums to what is
/// there, if it must. Reductions to which not all ranks contribute are exchanged in the order of sums: the network has no absent term.
class NetworkExchange final : public DeviceCollective {
 public:
  /// `ranks` has devices(). `computing`: halted before an exchange is aborted. `room`: null: its own.
  NetworkExchange(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks, Backend& backend,
                  Stream& computing, TermRoom* room);
  ~NetworkExchange() override;

  int64_t bytes() const override { return DeviceCollective::bytes() + (own_room_ ? own_room_->bytes() : 0); }

 private:
  bool reduce(Stream& stream, const Round& round, int contributors, bool adds) override;
  bool gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) override;
  bool sum_all(Stream& stream, const Round& round, int contributors, bool adds) override;

  using Native = DeviceGroup::Native;

  bool reduce_fast(Stream& stream, const Round& round, bool adds);
  bool gather_fast(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts);
  bool sum_all_fast(Stream& stream, const Round& round);
  bool is_reduced_in_place(bool adds) const;
  template <class Even, class Single>
  void each_call(const std::vector<DevicePieces>& parts, const Even& even, const Single& single);
  bool is_even(const std::vector<DevicePieces>& parts, int32_t tensor) const;

  void begin();
  const DevicePieces& place_arrived(const DevicePieces& own, size_t rank, Address& at);
  void send(int to, const DevicePieces& pieces);
  void receive(int from, const DevicePieces& pieces);
  void receive_terms(const DevicePieces& own, int ranks);
  template <class Then>
  void meet(Stream& stream, const Round& round, const Then& then);

  Stream& computing_;
  const std::string name_;                           // of what moves the elements
  std::vector<DeviceGroup::Part> sends_, receives_;  // of the current collective
  std::vector<Native> natives_;                      // instead of them, if it is fast
  std::vector<size_t> next_;                         // of a walk through the pieces of all ranks, by rank
  std::vector<DevicePieces> places_;                 // of terms that have come, by rank
  std::vector<const DevicePieces*> terms_;           // of a fold
  std::optional<TermRoom> own_room_;                 // if it was given none
  TermRoom& room_;                                   // the memory of these places
  const std::unique_ptr<Event> is_done_;
};

}  // namespace st
