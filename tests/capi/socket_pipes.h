// A host's pipes between ranks in one process: a pair of sockets between any two. Implements st_transport_callbacks with POSIX.
#pragma once

#include <scaletrain/transport.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace st::test {

class SocketPipes {
 public:
  explicit SocketPipes(int size) : size_(size), ends_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      end(rank).of = this;
      end(rank).sockets.assign(static_cast<size_t>(size), -1);
    }
    for (int a = 0; a < size; ++a)
      for (int b = 0; b < a; ++b) {
        std::array<int, 2> pair{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) throw std::runtime_error("no sockets");
        end(a).sockets[static_cast<size_t>(b)] = pair[0];
        end(b).sockets[static_cast<size_t>(a)] = pair[1];
      }
  }
  ~SocketPipes() {
    for (int rank = 0; rank < size_; ++rank) close_all(rank);
  }
  SocketPipes(const SocketPipes&) = delete;
  SocketPipes& operator=(const SocketPipes&) = delete;

  int size() const { return size_; }
  void* user(int rank) { return &end(rank); }
  int released(int rank) { return end(rank).released; }
  /// As if the rank's process had ended.
  void cut(int rank) {
    for (const int socket : end(rank).sockets)
      if (socket >= 0) shutdown(socket, SHUT_RDWR);
  }

  static void fill(st_transport_callbacks& callbacks) {
    callbacks.write = write;
    callbacks.read = read;
    callbacks.reason = reason;
    callbacks.release = release;
  }

 private:
  struct End {
    SocketPipes* of = nullptr;
    std::vector<int> sockets;
    std::string reason;
    int released = 0;
  };
  End& end(int rank) { return ends_[static_cast<size_t>(rank)]; }
  void close_all(int rank) {
    for (int& socket : end(rank).sockets) {
      if (socket >= 0) close(socket);
      socket = -1;
    }
  }

  static st_status moved(End& own, ssize_t bytes, bool is_end, int64_t* count) {
    *count = bytes > 0 ? bytes : 0;
    if (bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR))) return ST_OK;
    const bool is_closed = is_end || errno == EPIPE || errno == ECONNRESET;  // whether a read or a write sees it first
    own.reason = is_closed ? "its socket was closed" : std::generic_category().message(errno);
    return ST_IO;
  }
  static st_status write(void* user, int32_t to, const void* data, int64_t bytes, int64_t* taken) {
    End& own = *static_cast<End*>(user);
    const ssize_t n = send(own.sockets.at(static_cast<size_t>(to)), data, static_cast<size_t>(bytes), MSG_NOSIGNAL);
    return moved(own, n, false, taken);
  }
  static st_status read(void* user, int32_t from, void* data, int64_t bytes, int64_t* given) {
    End& own = *static_cast<End*>(user);
    const ssize_t n = recv(own.sockets.at(static_cast<size_t>(from)), data, static_cast<size_t>(bytes), 0);
    return moved(own, n, n == 0, given);
  }
  static const char* reason(void* user) { return static_cast<End*>(user)->reason.c_str(); }
  static void release(void* user) { ++static_cast<End*>(user)->released; }

  const int size_;
  std::vector<End> ends_;
};

}  // namespace st::test
