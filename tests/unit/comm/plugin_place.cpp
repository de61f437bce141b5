#include "plugin_place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "thrown_error.h"

namespace st {
namespace {

/// A socket bound to a port below those that Linux gives to connections by itself, one of which could take it before a rank listens.
int bound_socket(int& number) {
  static std::minstd_rand chance(std::random_device{}());
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  for (int trial = 0; trial < 1000; ++trial) {
    number = std::uniform_int_distribution(20000, 32000)(chance);
    address.sin_port = htons(static_cast<uint16_t>(number));
    if (bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return file;
  }
  throw std::runtime_error("no port");
}

}  // namespace

TransportPlugin plugin_of(const std::string& name) {
  setenv("SCALETRAIN_PLUGINS", ST_PLUGIN_FOLDER, 1);
  return TransportPlugin(name);
}

std::string why_no_plugin(const std::string& name) {
  const Error error = error_of([&] { plugin_of(name); });
  return error.code() == Code::ok ? "" : error.message();
}

int free_port() {
  int number = 0;
  close(bound_socket(number));
  return number;
}

TakenPort::TakenPort() : socket_(-1), number_(0) {
  socket_ = bound_socket(number_);
  if (listen(socket_, 1) != 0) throw std::runtime_error("nobody listens");
}
TakenPort::~TakenPort() { close(socket_); }

}  // namespace st
