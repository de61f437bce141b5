// How ranks find each other: at a port of rank 0's host. Gloo's store, in one exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace st::plugin {

struct RendezvousPoint {
  int rank = 0, size = 1;
  std::string host;  // rank 0's, a name or an address
  int port = 0;
  double patience = 60;  // seconds
  std::function<bool()> is_cancelled;
};

/// Throws Refusal, also on all ranks that have joined: busy if the port is in use or a rank has already joined; invalid_argument if the
/// host has no address; timeout, naming the ranks that did not join; rank_failed if one ended meanwhile; rank_mismatch with both sides;
/// cancelled (on the other ranks rank_failed).
class TcpRendezvous {
 public:
  /// Rank 0 opens the port; the others connect to it, waiting until it is open.
  explicit TcpRendezvous(RendezvousPoint place);
  ~TcpRendezvous();
  TcpRendezvous(const TcpRendezvous&) = delete;
  TcpRendezvous& operator=(const TcpRendezvous&) = delete;

  /// Waits until all ranks have joined. Called before everything below.
  void meet();
  /// The address at which the other ranks reach that rank's host.
  /// - A rank that joined over a loopback address is on rank 0's host and has rank 0's address.
  /// - Rank 0's address is that of its host name, unless that is a loopback address (Debian's /etc/hosts) or not an address of the host
  ///   (address translation): then it is the address at which other ranks reached it.
  const std::string& address_of(int rank) const { return addresses_.at(static_cast<size_t>(rank)); }

  using Bytes = std::vector<char>;
  /// All-gather: returns every rank's bytes in rank order. All ranks must call it equally often.
  std::vector<Bytes> exchange(const Bytes& own);
  /// Seconds of the patience that are left.
  double time_left() const;

 private:
  struct Guest;
  void open_port();
  void come();
  void choose_address();
  std::vector<Bytes> receive_guests(const std::function<Bytes()>& own);
  std::vector<Bytes> ask_rank_0(const Bytes& own);
  void check_patience() const;

  const RendezvousPoint place_;
  const double end_;
  double connected_at_ = 0;  // to rank 0
  int socket_ = -1;          // rank 0: listens until all ranks have joined; others: connected to rank 0
  std::vector<Guest> guests_;
  bool is_whole_ = false;    // all ranks have joined
  bool is_reached_ = false;  // rank 0: own_address_ is an address of this host and not a loopback one
  std::string own_address_;
  std::vector<std::string> addresses_;
};

}  // namespace st::plugin
