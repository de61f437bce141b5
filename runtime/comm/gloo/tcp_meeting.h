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

  /// Waits until all have come. Before all that follows.
  void meet();
  /// Where a rank's host is reached by the others. A rank that came by a loopback address is on rank 0's host, whose address it has too.
  /// Rank 0's is that of its name, or where that is a loopback one (as Debian's /etc/hosts has it) or none of its own (as behind a
  /// translation of addresses), the one at which others have reached it.
  const std::string& address_of(int rank) const { return addresses_.at(static_cast<size_t>(rank)); }

  using Bytes = std::vector<char>;
  /// What each rank brings, in their order. As often as all ranks call it.
  std::vector<Bytes> exchange(const Bytes& own);
  /// Of the patience, in seconds.
  double time_left() const;

 private:
  struct Guest;
  void open_port();
  void come();
  void choose_address();
  std::vector<Bytes> receive_guests(const std::function<Bytes()>& own);
  std::vector<Bytes> ask_rank_0(const Bytes& own);
  void check_patience() const;

  const MeetingPlace place_;
  const double end_;
  double connected_at_ = 0;  // to rank 0
  int socket_ = -1;          // rank 0: it listens, until all have come; else: to rank 0
  std::vector<Guest> guests_;
  bool is_whole_ = false;    // all have come
  bool is_reached_ = false;  // rank 0: the address is one of its own that is no loopback one
  std::string own_address_;
  std::vector<std::string> addresses_;
};

double seconds_now();

}  // namespace st::plugin
