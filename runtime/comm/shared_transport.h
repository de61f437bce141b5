// Several groups of ranks over one transport, for any transport.
//
// Each stream of the transport carries frames: the number of a group, then elements of that group's stream. Whichever thread of a rank
// waits reads all that arrives and hands it over, so a group never waits for another one's thread:
// - Received elements wait in a ring for each group and rank. Its writer never has more than the ring's bytes in flight; the reader says in
//   its frames how many it has taken. So memory is bounded, and every frame can be read at once.
// - Short ranges are copied and leave the poster's memory at once. Long ones are sent from the poster's memory, one at a time for each
//   rank.
// - One thread at a time sleeps in the transport, and wakes when another thread of this rank posts. The others sleep until it has read
//   something of theirs, or has left; then one of them takes its place.
// Transports know nothing of this: the ABI of plug-ins and the pipes' frames are as they were.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport.h"

namespace st {

/// A rank's end of a transport that its groups share; they own it together. A failure in one group ends all of them, on all ranks: the
/// others share its ranks, and its memory may still be read.
class SharedTransport : public std::enable_shared_from_this<SharedTransport> {
 public:
  struct Member {
    int rank = 0;        // of the transport
    uint32_t group = 0;  // the number by which that rank knows the group
  };
  static constexpr uint32_t kWhole = 0, kFirst = 1;  // the group of all ranks, and the first that is split off: both are reserved

  /// On a transport whose streams carry nothing: all that was posted has been read. The destructor waits until the other ranks have taken
  /// this rank's elements, at most for `patience` seconds.
  SharedTransport(Transport& transport, double patience);
  ~SharedTransport();
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  void own(std::unique_ptr<Transport> transport) noexcept { owned_ = std::move(transport); }

  /// This rank's number for a new group. What arrives for it is kept until it is opened.
  uint32_t reserve();
  void release(uint32_t group) noexcept;  // instead of opening it
  /// This rank's end of a group: members[rank] is this rank. Each rank must know the others' numbers before it opens its own.
  std::unique_ptr<Transport> open(uint32_t group, std::vector<Member> members, int rank);

  /// Bytes that a rank of a group of this size may hold for the others, in a transport of `all` ranks.
  static int64_t bytes_of_group(int size, int all);

 private:
  class End;
  struct Group;
  struct Stream;
  struct Peer;
  struct Frame {
    uint32_t group = 0;  // the receiver's number
    uint32_t bytes = 0;  // of elements that follow, or kLeft
    uint64_t taken = 0;  // elements' bytes of the stream in the other direction that this rank has taken
  };
  static constexpr uint32_t kLeft = ~0U;  // the sender has left the group

  Stream& stream(Group& group, int rank);
  std::byte* room_in(Peer& peer, size_t bytes);
  bool is_credit_due(const Stream& stream) const;
  void reclaim(int to, Peer& peer);
  bool compose(int to, Peer& peer, Stream& stream);
  void post_composed(int to, Peer& peer);
  void flush(int to);
  void flush_soon(int to);
  bool pull(int from);
  void understand(int from, Peer& peer);
  bool pump();
  void idle(Group& group, std::unique_lock<std::mutex>& lock, double seconds);
  void withdraw(Group& group, std::unique_lock<std::mutex>& lock) noexcept;
  void leave(uint32_t number) noexcept;
  bool is_delivered(int to) const;

  std::unique_ptr<Transport> owned_;  // the same; destroyed last
  Transport& transport_;
  const double patience_;
  const uint64_t window_;   // bytes of a stream that may be in flight: a power of two
  const size_t out_bytes_;  // copied and not yet sent to a rank, at most

  std::mutex mutex_;  // guards all below, and the transport unless a thread idles in it
  std::condition_variable changed_;
  bool is_idling_ = false, is_over_ = false;
  int waiters_ = 0;
  uint32_t next_number_ = kFirst + 1;
  std::map<uint32_t, std::unique_ptr<Group>> groups_;
  std::vector<Peer> peers_;
  std::vector<int> leaving_;  // within pump()
  std::optional<RankFailure> failure_;
};

}  // namespace st
