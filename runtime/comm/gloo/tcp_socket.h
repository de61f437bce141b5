// TCP sockets as the rendezvous of ranks uses them: addresses of hosts, and reading and writing within its patience.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace st::plugin {

double seconds_now();
std::string reason_of(int error);  // an errno

class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  int file() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

// --- addresses

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// Throws Refusal, naming the host.
Addresses addresses_of(const char* host, int port, int flags);
std::string text_of_address(const sockaddr_storage& address, socklen_t length);
bool is_ipv6(const std::string& address);
bool is_loopback(const std::string& address);
/// Whether this host has that address.
bool is_own(const addrinfo& address);
/// The local address of a connection; empty if it is unknown.
std::string own_side_of(int file);
/// Whether a socket is connected to itself: the system may give a socket the very port of this host to which it connects, if nobody listens
/// there.
bool is_its_own_peer(int file);

// --- connections

enum class Families { one, both };
/// Listens at all of this host's addresses of that family, or of both families: then at IPv6's, which accepts IPv4, too. -1: failed, see
/// errno.
int listening_at(int family, Families families, int port);

constexpr int kLook = 20;  // milliseconds: how long one wait lasts, between checks of cancellation and patience
/// Waits that long for poll()'s events.
bool wait_for(int file, short events);
/// Appends what can be read now to `bytes`, up to `wanted` bytes in total. False: the other side has closed.
bool read_some(int file, std::vector<char>& bytes, size_t wanted);
/// Writes all bytes, waiting up to a second for the other side. False: it is gone or takes nothing.
bool write_all(int file, const std::vector<char>& bytes);

}  // namespace st::plugin
