// Runs the messages of a plan between stages over a link.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "exec/device_offer.h"
#include "exec/host_mirror.h"
#include "exec/network_message.h"
#include "exec/stage_links.h"
#include "plan/exchange_plan.h"

namespace st {

/// The messages that a stage sends from one place, or receives there; one at a time is under way.
///   host's memory                            the link copies from operand to operand
///   memory of a device that both ends share  the sender offers its operand (device_offer.h), and the receiver's stream copies from there.
///                                            The host waits for the other stage, not for the device
///   devices that a network connects          the network moves the elements (network_message.h)
///   another device's, or another process's   else copies in the host's memory, which the first message allocates
class PlannedMessage {
 public:
  /// `call`: of a send, with the value in call.in[0], or of a receive, with the slot in call.writes[0]. `stream`: the work that makes the
  /// value, or uses it. `moving`: that of what a network moves; null: there is none. Borrows all arguments.
  PlannedMessage(const ExchangePlan& message, const Call& call, StageLinks& stages, Backend& backend, Stream& stream,
                 Stream* moving = nullptr);
  ~PlannedMessage();
  PlannedMessage(const PlannedMessage&) = delete;
  PlannedMessage& operator=(const PlannedMessage&) = delete;

  /// Forgets where the operand is: the next message looks for it.
  void place();
  /// Whether messages are ordered with the work of the stream. Otherwise that must have been finished before each call below.
  bool follows() const { return link().shares_memory(); }

  // These throw what the link throws, and invalid_argument for an operand that is not in the device's memory.

  /// Hands the value over, once the last message has left.
  void send();
  /// Waits until the last message has left; work that the stream gets from now on may write its place again.
  void release();
  /// Waits for the next message; work that the stream gets from now on may read it.
  void receive();

  /// After an error: no other stage reads the memory when this returns.
  void withdraw() noexcept;
  int64_t copied_bytes() const { return mirror_ ? mirror_->bytes() : 0; }  // pinned memory for copies of the operand

 private:
  Link& link() const { return stages_.link(message_.link); }
  void await(Link& link);
  int64_t offer(Link& link);
  bool copy_from(uint64_t number);
  void require_placed(const Operand& operand);
  std::byte* in_host(const Operand& operand);

  const ExchangePlan& message_;
  const Call& call_;
  StageLinks& stages_;
  Backend& backend_;
  Stream& stream_;
  int64_t sent_ = 0, sent_over_ = 0;  // the link's number of the last message sent, 0: none; the connection of the links that it is of
  std::optional<HostMirror> mirror_;  // on a device
  std::optional<NetworkMessage> network_;
  std::shared_ptr<DeviceOffer> offer_;    // of a sender; null: it has offered nothing yet
  DevicePieces piece_ = DevicePieces(1);  // that is offered
  bool is_placed_ = false;                // the operand is in the device's memory
  bool is_offered_ = false;               // the stream does not wait yet until it has been read
};

}  // namespace st
