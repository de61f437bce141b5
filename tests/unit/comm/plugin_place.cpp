#include "plugin_place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "thrown_error.h"

namespace st {
namespace {

/// A socket bound to a port that the system chooses.
int bound_socket(int& number) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (file < 0 || bind(file, any, length) != 0 || getsockname(file, any, &length) != 0) throw std::runtime_error("no port");
  number = ntohs(address.sin_port);
  return file;
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
