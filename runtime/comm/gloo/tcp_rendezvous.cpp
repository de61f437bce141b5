#include "comm/gloo/tcp_rendezvous.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "comm/gloo/tcp_socket.h"
#include "comm/plugin_side/plugin_refusal.h"

namespace st::plugin {
namespace {

constexpr uint32_t kMagic = 0x53544d32;  // "STM2"; a changed layout gets another number
constexpr int64_t kMostBytes = int64_t{16} << 20;

/// The first message of a joining rank ("guest"); its `bytes` bytes follow.
struct Arrival {
  uint32_t magic = kMagic;
  int32_t rank = 0, size = 0;
  uint32_t unused = 0;
  int64_t bytes = 0;
};

/// Rank 0's answer, followed by every rank's bytes, each after its length, or by the reason of a refusal.
struct Answer {
  uint32_t magic = kMagic;
  st_status status = ST_OK;
  int32_t failed_rank = -1;
  uint32_t unused = 0;
  int64_t bytes = 0;
};

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

template <class T>
void append(std::vector<char>& to, const T& value) {
  to.resize(to.size() + sizeof value);
  std::memcpy(to.data() + to.size() - sizeof value, &value, sizeof value);
}

template <class T>
T at(const std::vector<char>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<char> answer_of(const Refusal& refusal) {
  const std::string reason = refusal.what();
  std::vector<char> bytes;
  append(bytes, Answer{kMagic, refusal.status(), refusal.rank(), 0, static_cast<int64_t>(reason.size())});
  bytes.insert(bytes.end(), reason.begin(), reason.end());
  return bytes;
}

}  // namespace

double TcpRendezvous::time_left() const { return end_ - seconds_now(); }

void TcpRendezvous::check_patience() const {
  if (place_.is_cancelled && place_.is_cancelled()) throw Refusal(ST_CANCELLED, "cancelled while waiting for other ranks");
}

// Rank 0.

/// All ranks connect to each other in one address family: IPv4 if rank 0's host has an IPv4 address under its name and others use it, else
/// IPv6. Ranks may join over either, because other hosts may resolve rank 0's name to addresses that it does not know itself.
void TcpRendezvous::open_port() {
  const Addresses list = addresses_of(place_.host.c_str(), place_.port, 0);  // refuses a host name that no other rank could resolve
  own_address_ = place_.host;
  int family = list->ai_family;
  bool is_found = false;
  for (const int wanted : {AF_INET, AF_INET6})
    for (const addrinfo* address = list.get(); address != nullptr && !is_found; address = address->ai_next) {
      if (address->ai_family != wanted || !is_own(*address)) continue;
      sockaddr_storage place{};
      std::memcpy(&place, address->ai_addr, address->ai_addrlen);
      if (std::string text = text_of_address(place, address->ai_addrlen); !text.empty()) own_address_ = std::move(text);
      family = wanted;
      is_found = true;
      is_reached_ = !is_loopback(own_address_);
    }
  socket_ = listening_at(AF_INET6, Families::both, place_.port);
  if (socket_ < 0) socket_ = listening_at(family, Families::one, place_.port);
  const int error = errno;
  if (socket_ >= 0) return;
  throw Refusal(
      error == EADDRINUSE ? ST_BUSY : ST_IO,
      "rank 0 cannot open port " + std::to_string(place_.port) + ": " + reason_of(error) +
          (error == EADDRINUSE ? "; another program, or a second rank 0, uses it: set MASTER_PORT to a free port, on all ranks" : ""),
      0);
}

struct TcpRendezvous::Guest {
  Socket socket;
  int rank = -1;  // known once it has joined; -1 in the first exchange
  std::vector<char> bytes = {};
  std::optional<Arrival> arrival = {};

  /// False: it has closed the connection or is not a rank.
  bool read() {
    if (!arrival) {
      if (!read_some(socket.file(), bytes, sizeof(Arrival))) return false;
      if (bytes.size() < sizeof(Arrival)) return true;
      arrival = at<Arrival>(bytes, 0);
      if (arrival->magic != kMagic || arrival->bytes < 0 || arrival->bytes > kMostBytes) return false;
    }
    const size_t wanted = sizeof(Arrival) + static_cast<size_t>(arrival->bytes);
    return read_some(socket.file(), bytes, bytes.size() < wanted ? wanted : wanted + 1);
  }
  bool is_there() const { return arrival && bytes.size() == sizeof(Arrival) + static_cast<size_t>(arrival->bytes); }
  void begin_again() {
    rank = arrival->rank;
    arrival.reset();
    bytes.clear();
  }
};

TcpRendezvous::TcpRendezvous(RendezvousPoint place) : place_(std::move(place)), end_(seconds_now() + place_.patience) {
  if (place_.rank == 0)
    open_port();
  else
    come();
}

TcpRendezvous::~TcpRendezvous() {
  if (socket_ >= 0) close(socket_);
}

/// Ranks on other hosts have reached this host at an address that is not a loopback one, so all can reach it there. The address of its name
/// is of no use if all of them joined over the other family.
void TcpRendezvous::choose_address() {
  std::vector<std::string> reached;
  for (const Guest& guest : guests_)
    if (std::string at = own_side_of(guest.socket.file()); !at.empty() && !is_loopback(at)) reached.push_back(std::move(at));
  const auto is_of_name = [&](const std::string& at) { return is_ipv6(at) == is_ipv6(own_address_); };
  if (is_reached_ && !reached.empty() && std::ranges::none_of(reached, is_of_name)) own_address_ = reached.front();
  for (const Guest& guest : guests_) {
    if (is_reached_) return;
    const std::string at = own_side_of(guest.socket.file());
    is_reached_ = !at.empty() && !is_loopback(at);
    if (is_reached_ || own_address_ == place_.host) own_address_ = at.empty() ? own_address_ : at;
  }
}

std::vector<TcpRendezvous::Bytes> TcpRendezvous::receive_guests(const std::function<Bytes()>& own) {
  constexpr double kLeast = 2;  // seconds; enough for ranks that have already joined
  const double end = is_whole_ ? std::max(end_, seconds_now() + kLeast) : end_;
  std::vector<Guest*> by_rank(static_cast<size_t>(place_.size), nullptr);
  int not_let_in = 0;  // errno, if the last connection could not be accepted
  const auto missing = [&] {
    std::string list;
    for (int rank = 1; rank < place_.size; ++rank)
      if (by_rank[static_cast<size_t>(rank)] == nullptr) list += (list.empty() ? "" : ", ") + std::to_string(rank);
    return list;
  };
  const auto look_at = [&](Guest& guest) {
    const bool was_there = guest.is_there();
    const bool goes_on = guest.read();
    const int rank = guest.arrival ? guest.arrival->rank : -1;
    if (!goes_on && guest.arrival && guest.arrival->magic != kMagic)
      write_all(guest.socket.file(),
                answer_of({ST_RANK_MISMATCH, "rank 0 runs another version of the library; run one version on all ranks", 0}));
    if (!goes_on && guest.rank >= 0)
      throw Refusal(ST_RANK_FAILED, "rank " + std::to_string(guest.rank) + " ended before all ranks were connected; its own error says why",
                    guest.rank);
    if (was_there && !goes_on)
      throw Refusal(ST_RANK_FAILED, "rank " + std::to_string(rank) + " ended before all ranks had joined; its own error says why", rank);
    if (was_there || !goes_on || !guest.is_there()) return goes_on;
    if (guest.arrival->size != place_.size || rank < 1 || rank >= place_.size)
      throw Refusal(ST_RANK_MISMATCH,
                    "rank " + std::to_string(rank) + " was started as one of " + std::to_string(guest.arrival->size) +
                        " ranks, rank 0 as one of " + std::to_string(place_.size) + "; start all ranks with the same number of ranks",
                    rank);
    if (Guest*& there = by_rank[static_cast<size_t>(rank)]; there == nullptr) {
      there = &guest;  // valid in this pass only: erase_if may move the guests
      return true;
    }
    write_all(guest.socket.file(),
              answer_of({ST_BUSY, "rank " + std::to_string(rank) + " has already joined; give each process its own rank", rank}));
    return false;
  };
  try {
    for (std::string who = missing(); !who.empty(); who = missing()) {
      std::vector<pollfd> wanted{{socket_, POLLIN, 0}};
      for (const Guest& guest : guests_) wanted.push_back({guest.socket.file(), POLLIN, 0});
      poll(wanted.data(), wanted.size(), kLook);
      if ((wanted[0].revents & POLLIN) != 0) {
        const int file = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
        not_let_in = file >= 0 ? 0 : errno;
        if (file >= 0) guests_.push_back({Socket(file)});
        // The connection is still pending, perhaps for want of a file descriptor, so the next poll() would return at once, again and again.
        if (not_let_in != 0) poll(nullptr, 0, kLook);
      }
      std::erase_if(guests_, [&](Guest& guest) { return !look_at(guest); });
      std::fill(by_rank.begin(), by_rank.end(), nullptr);
      for (Guest& guest : guests_)
        if (guest.is_there()) by_rank[static_cast<size_t>(guest.arrival->rank)] = &guest;
      check_patience();
      if (seconds_now() > end && !missing().empty())
        throw Refusal(ST_TIMEOUT,
                      "not all " + std::to_string(place_.size) + (is_whole_ ? " ranks answered again at " : " ranks reached ") +
                          place_.host + ":" + std::to_string(place_.port) + " within " + number(place_.patience) +
                          " s; missing: " + missing() +
                          (not_let_in == 0 ? "" : " (the last connection could not be accepted: " + reason_of(not_let_in) + ")") +
                          "; start every rank with the same MASTER_ADDR and MASTER_PORT, or raise the deadline",
                      std::stoi(missing()));
    }
  } catch (const Refusal& refusal) {
    const bool is_ours_alone = refusal.status() == ST_CANCELLED;  // the other ranks were not cancelled
    const Refusal reported = is_ours_alone ? Refusal(ST_RANK_FAILED, "rank 0 has aborted: cancelled", 0) : refusal;
    for (const Guest& guest : guests_) write_all(guest.socket.file(), answer_of(reported));
    throw;
  }
  if (!std::exchange(is_whole_, true)) close(std::exchange(socket_, -1));
  std::erase_if(guests_, [](const Guest& guest) { return !guest.is_there(); });  // other connections are not ranks
  std::ranges::sort(guests_, {}, [](const Guest& guest) { return guest.arrival->rank; });
  std::vector<Bytes> all{own()};
  for (Guest& guest : guests_) {
    all.emplace_back(guest.bytes.begin() + sizeof(Arrival), guest.bytes.end());
    guest.begin_again();
  }
  Bytes joined;
  for (const Bytes& bytes : all) {
    append(joined, static_cast<int64_t>(bytes.size()));
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  Bytes answer;
  append(answer, Answer{kMagic, ST_OK, -1, 0, static_cast<int64_t>(joined.size())});
  answer.insert(answer.end(), joined.begin(), joined.end());
  for (const Guest& guest : guests_) write_all(guest.socket.file(), answer);  // a rank that is gone is noticed when it is connected to
  return all;
}

// The others.

void TcpRendezvous::come() {
  const Addresses list = addresses_of(place_.host.c_str(), place_.port, 0);
  std::vector<const addrinfo*> places;  // IPv4 first: all ranks should join over one family, and the resolver's order differs per host
  for (const bool is_first : {true, false})
    for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next)
      if ((address->ai_family == AF_INET) == is_first) places.push_back(address);
  int pause = 1;
  bool was_refused = false;  // IPv4 was refused once while IPv6 connected: rank 0 may have opened its port between the two attempts
  for (int last = ETIMEDOUT;;) {
    bool is_refused = false;
    for (const addrinfo* const address : places) {
      Socket guest(socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol));
      if (guest.file() < 0) {
        last = errno;
        continue;
      }
      if (connect(guest.file(), address->ai_addr, address->ai_addrlen) != 0) {
        int error = errno;
        // If the name has several addresses, one that does not answer leaves time for the others.
        const double now = seconds_now(), until = address == places.back() ? end_ : std::min(end_, now + std::max(1.0, (end_ - now) / 4));
        while (error == EINPROGRESS && seconds_now() < until) {
          check_patience();
          if (!wait_for(guest.file(), POLLOUT)) continue;
          socklen_t length = sizeof error;
          getsockopt(guest.file(), SOL_SOCKET, SO_ERROR, &error, &length);
        }
        if (error != 0 && error != EINPROGRESS) last = error;
        is_refused = is_refused || (error == ECONNREFUSED && address->ai_family == AF_INET);
        if (error != 0) continue;
      }
      if (is_its_own_peer(guest.file())) {  // it must not keep the port from rank 0
        constexpr linger kAtOnce{1, 0};
        setsockopt(guest.file(), SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof kAtOnce);
        last = ECONNREFUSED;
        continue;
      }
      if (is_refused && !std::exchange(was_refused, true)) break;
      own_address_ = own_side_of(guest.file());
      socket_ = guest.release();
      connected_at_ = seconds_now();
      return;
    }
    check_patience();
    if (seconds_now() > end_)
      throw Refusal(ST_TIMEOUT,
                    "rank 0 could not be reached at " + place_.host + ":" + std::to_string(place_.port) + " within " +
                        number(place_.patience) + " s: " + reason_of(last) +
                        "; start rank 0 there, and set the same MASTER_ADDR and MASTER_PORT on all ranks",
                    0);
    poll(nullptr, 0, pause);  // rank 0 may start later than this rank
    pause = std::min(2 * pause, kLook);
  }
}

std::vector<TcpRendezvous::Bytes> TcpRendezvous::ask_rank_0(const Bytes& own) {
  const std::string at_port = place_.host + ":" + std::to_string(place_.port);
  const Refusal gone(ST_RANK_FAILED, "rank 0 at " + at_port + " ended before all ranks were connected; its own error says why", 0);
  Bytes question;
  append(question, Arrival{kMagic, place_.rank, place_.size, 0, static_cast<int64_t>(own.size())});
  question.insert(question.end(), own.begin(), own.end());
  if (!write_all(socket_, question)) throw Refusal(gone);
  constexpr double kLater = 2;  // seconds: rank 0 may have started later, and its error names the missing ranks
  Bytes bytes;
  std::optional<Answer> answer;
  while (!answer || bytes.size() < sizeof(Answer) + static_cast<size_t>(answer->bytes)) {
    check_patience();
    if (seconds_now() > std::max(end_, connected_at_ + place_.patience) + kLater)
      throw Refusal(ST_TIMEOUT,
                    "rank 0 did not answer at " + at_port + " within " + number(place_.patience) +
                        " s; another program may use that port: set MASTER_PORT to a free port, on all ranks",
                    0);
    if (!wait_for(socket_, POLLIN)) continue;
    if (!read_some(socket_, bytes, sizeof(Answer) + (answer ? static_cast<size_t>(answer->bytes) : 0))) throw Refusal(gone);
    if (answer || bytes.size() < sizeof(Answer)) continue;
    answer = at<Answer>(bytes, 0);
    if (answer->magic != kMagic || answer->bytes < 0 || answer->bytes > kMostBytes * place_.size)
      throw Refusal(ST_RANK_MISMATCH,
                    "the program that answers at " + at_port +
                        " is not rank 0 of this version; run one version on all ranks, and set MASTER_PORT to a free port, on all ranks",
                    0);
  }
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(Answer));
  if (answer->status != ST_OK) throw Refusal(answer->status, std::string(bytes.begin(), bytes.end()), answer->failed_rank);
  std::vector<Bytes> all;
  for (size_t offset = 0; offset + sizeof(int64_t) <= bytes.size();) {
    const auto length = static_cast<size_t>(at<int64_t>(bytes, offset));
    offset += sizeof(int64_t);
    if (length > bytes.size() - offset) break;
    all.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes.begin() + static_cast<std::ptrdiff_t>(offset + length));
    offset += length;
  }
  if (all.size() != static_cast<size_t>(place_.size))
    throw Refusal(ST_RANK_MISMATCH,
                  "rank 0 at " + at_port + " sent the addresses of " + std::to_string(all.size()) + " ranks, expected " +
                      std::to_string(place_.size) + "; start all ranks with the same number of ranks and the same version",
                  0);
  return all;
}

std::vector<TcpRendezvous::Bytes> TcpRendezvous::exchange(const Bytes& own) {
  return place_.rank == 0 ? receive_guests([&] { return own; }) : ask_rank_0(own);
}

void TcpRendezvous::meet() {
  const auto own = [&] { return Bytes(own_address_.begin(), own_address_.end()); };
  const auto choose = [&] {
    choose_address();
    return own();
  };
  for (const Bytes& address : place_.rank == 0 ? receive_guests(choose) : ask_rank_0(own()))
    addresses_.emplace_back(address.begin(), address.end());
  for (std::string& address : addresses_)
    if (is_loopback(address)) address = addresses_[0];
  for (int rank = 1; rank < place_.size; ++rank)
    if (const std::string& address = address_of(rank); is_ipv6(address) != is_ipv6(addresses_[0]))
      throw Refusal(ST_RANK_MISMATCH,
                    "rank " + std::to_string(rank) + " is at " + address + ", rank 0 at " + addresses_[0] +
                        ", but all ranks must use the same of IPv4 and IPv6; set MASTER_ADDR to an address, or to a name that resolves to "
                        "one of the two on all hosts",
                    rank);
}

}  // namespace st::plugin
