#include "exec/network_message.h"

#include <functional>
#include <span>

#include "exec/connected_devices.h"

namespace st {

NetworkMessage::NetworkMessage(const ExchangePlan& message, Communicator& stages, Backend& backend, Stream& stream, Stream& computing)
    : message_(message),
      stages_(stages),
      stream_(stream),
      computing_(computing),
      sends_(message.op == Op::send),
      is_lower_(stages.rank() < message.other),
      bytes_(message.elements * bytes_of(message.dtype)),
      name_(stages.devices()->name()),
      is_done_(backend.make_event()) {}

void NetworkMessage::carry(Communicator& ends) {
  ConnectedDevices& devices = ConnectedDevices::of(stages_);
  HeldTurn turn(devices.turn());  // given back after an abort
  bool is_given = false;
  // An error of another message has aborted the devices, and ended the group before.
  const auto has_turn = [&] { return !ends.has_ended() && turn.take(); };
  const auto is_ready = [&] { return devices.is_ready(); };
  const auto is_done = [&] { return devices.has_run(*is_done_); };
  const auto take_first = [&](std::span<const uint64_t>) -> int64_t {
    if (is_lower_) ends.await(name_, std::ref(has_turn));
    return 0;
  };
  const auto move = [&](std::span<const uint64_t>) -> int64_t {
    if (!is_lower_) ends.await(name_, std::ref(has_turn));
    is_given = true;
    give();
    ends.await(name_, std::ref(is_ready));
    stream_.record(*is_done_);
    ends.await(name_, std::ref(is_done));
    return sends_ ? bytes_ : 0;
  };
  const int sender = sends_ ? ends.rank() : 1 - ends.rank();
  const CollectiveCall call{Collective::broadcast, ReduceOp::sum, message_.dtype, message_.elements, sender, message_.label};
  try {
    ends.meet(call, 0, 0, std::ref(take_first));  // references: std::function would allocate for the captures
    ends.meet(call, 0, 0, std::ref(move));
  } catch (...) {
    if (is_given) {
      computing_.halt_updates();
      devices.abort();
    }
    throw;
  }
}

void NetworkMessage::give() {
  const DeviceGroup::Part part{message_.other, data_, bytes_};
  const std::span<const DeviceGroup::Part> one(&part, 1), none;
  stages_.devices()->exchange(stream_, sends_ ? one : none, sends_ ? none : one);
}

}  // namespace st
