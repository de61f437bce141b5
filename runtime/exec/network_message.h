// The messages of a plan between stages that each have a device, whose memory a DeviceGroup moves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "comm/link.h"
#include "plan/exchange_plan.h"

namespace st {

/// Sends or receives the value of one place. Its ends synchronise twice: the first time both have come, so the value is made and its place
/// free; the lower stage then takes the turn of its device, and the second time the higher one its own. So no turn is held by an end that
/// still waits for work, and who holds one waits for that of a higher stage only: messages, and collectives within a stage, all end
/// (README.md).
class NetworkMessage final : public Link::Carrier {
 public:
  /// `stages`: has devices(). `stream`: of all messages of this rank, used by the one that has the turn. `computing`: halted before a
  /// message is aborted. Borrows all arguments.
  NetworkMessage(const ExchangePlan& message, Communicator& stages, Backend& backend, Stream& stream, Stream& computing);
  NetworkMessage(const NetworkMessage&) = delete;
  NetworkMessage& operator=(const NetworkMessage&) = delete;

  /// Where the elements lie; not while a message is under way.
  void place(Address data) { data_ = data; }
  /// On the thread of the link or of the receiver. The device has finished what makes the value, or reads its place.
  void carry(Communicator& ends) override;

 private:
  void give();

  const ExchangePlan& message_;
  Communicator& stages_;
  Stream &stream_, &computing_;
  const bool sends_, is_lower_;  // is_lower_: the stage of the two that takes its turn first
  const int64_t bytes_;
  const std::string name_;  // of what moves the elements
  Address data_;
  const std::unique_ptr<Event> is_done_;
};

}  // namespace st
