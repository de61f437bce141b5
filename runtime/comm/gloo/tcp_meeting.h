// How ranks find each other: at a port of rank 0's host. What Gloo calls a store, in one exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace st::plugin {

struct MeetingPlace {
  int rank = 0, size = 1;
  std::string host;  // rank 0's, a name or an address
  int port = 0;
  double patience = 60;  // seconds
  std::function<bool()> is_cancelled;
};

/// Throws Refusal: busy where the port is in use, or a rank there already; invalid_argument where the host has no address; timeout naming
/// the ranks that did not come; rank_failed where one ended meanwhile; rank_mismatch with both sides; cancelled. All who are there learn
/// it.
class TcpMeeting {
 public:
  /// Rank 0 opens the port; the others come to it, and wait until it is open.
  explicit TcpMeeting(MeetingPlace place);
  ~TcpMeeting();
  TcpMeeting(const TcpMeeting&) = delete;
  TcpMeeting& operator=(const TcpMeeting&) = delete;

  /// An address of this host at which the others reach it.
  const std::string& own_address() const { return own_address_; }

  using Bytes = std::vector<char>;
  /// What each rank brings, in their order.
  std::vector<Bytes> exchange(const Bytes& own);
  /// Of the patience, in seconds.
  double time_left() const;

 private:
  struct Guest;
  void open_port();
  void come();
  std::vector<Bytes> receive_guests(const Bytes& own);
  std::vector<Bytes> ask_rank_0(const Bytes& own);
  void check_patience() const;

  const MeetingPlace place_;
  const double end_;
  double connected_at_ = 0;  // to rank 0
  int socket_ = -1;          // rank 0: it listens; else: to rank 0
  std::string own_address_;
};

double seconds_now();

}  // namespace st::plugin
