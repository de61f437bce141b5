#include "comm/gloo/tcp_socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <system_error>

#include "comm/plugin_side/plugin_refusal.h"

namespace st::plugin {

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string reason_of(int error) { return std::generic_category().message(error); }

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

Addresses addresses_of(const char* host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &list);
  if (error != 0)
    throw Refusal(ST_INVALID_ARGUMENT, std::string("the address of rank 0's host, \"") + (host == nullptr ? "" : host) +
                                           "\", was not found: " + gai_strerror(error) +
                                           "; set MASTER_ADDR to its host name or IP address");
  return Addresses(list);
}

std::string text_of_address(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  constexpr std::string_view kMapped = "::ffff:";  // how a dual-stack socket shows an IPv4 address
  const std::string_view shown = text.data();
  return std::string(shown.starts_with(kMapped) && shown.find('.') != std::string_view::npos ? shown.substr(kMapped.size()) : shown);
}

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }
bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string own_side_of(int file) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  return getsockname(file, reinterpret_cast<sockaddr*>(&own), &length) == 0 ? text_of_address(own, length) : std::string();
}

bool is_its_own_peer(int file) {
  sockaddr_storage own{}, other{};
  socklen_t own_length = sizeof own, other_length = sizeof other;
  return getsockname(file, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         getpeername(file, reinterpret_cast<sockaddr*>(&other), &other_length) == 0 && own_length == other_length &&
         std::memcmp(&own, &other, own_length) == 0;
}

int listening_at(int family, Families families, int port) {
  Socket listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1, is_alone = families == Families::one ? 1 : 0;
  sockaddr_storage any{};  // zeros are every address, in both families
  any.ss_family = static_cast<sa_family_t>(family);
  socklen_t length = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    length = sizeof(sockaddr_in6);
    reinterpret_cast<sockaddr_in6*>(&any)->sin6_port = htons(static_cast<uint16_t>(port));
    if (listener.file() >= 0) setsockopt(listener.file(), IPPROTO_IPV6, IPV6_V6ONLY, &is_alone, sizeof is_alone);
  } else {
    reinterpret_cast<sockaddr_in*>(&any)->sin_port = htons(static_cast<uint16_t>(port));
  }
  const bool is_open = listener.file() >= 0 && setsockopt(listener.file(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       bind(listener.file(), reinterpret_cast<const sockaddr*>(&any), length) == 0 && listen(listener.file(), 1024) == 0;
  return is_open ? listener.release() : -1;
}

bool is_own(const addrinfo& address) {
  sockaddr_storage place{};
  std::memcpy(&place, address.ai_addr, address.ai_addrlen);
  if (place.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&place)->sin6_port = 0;
  if (place.ss_family == AF_INET) reinterpret_cast<sockaddr_in*>(&place)->sin_port = 0;
  const Socket probe(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.file() >= 0 && bind(probe.file(), reinterpret_cast<const sockaddr*>(&place), address.ai_addrlen) == 0;
}

bool wait_for(int file, short events) {
  pollfd wanted{file, events, 0};
  return poll(&wanted, 1, kLook) > 0;
}

bool read_some(int file, std::vector<char>& bytes, size_t wanted) {
  while (bytes.size() < wanted) {
    std::array<char, 4096> piece;
    const ssize_t n = recv(file, piece.data(), std::min(piece.size(), wanted - bytes.size()), MSG_DONTWAIT);
    if (n > 0) {
      bytes.insert(bytes.end(), piece.data(), piece.data() + n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return true;
}

bool write_all(int file, const std::vector<char>& bytes) {
  const double end = seconds_now() + 1;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = send(file, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (seconds_now() > end) return false;
      wait_for(file, POLLOUT);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace st::plugin
