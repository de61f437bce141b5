// Plug-ins and ports for tests.
#pragma once

#include <string>

#include "comm/plugins/transport_plugin.h"

namespace st {

/// Loads the plug-in from the build folder.
TransportPlugin plugin_of(const std::string& name);
/// Why it cannot be loaded; empty if it can.
std::string why_no_plugin(const std::string& name);

/// A port of this machine at which nobody listens, and which the system does not give to others for a while.
int free_port();

/// A port at which this process listens.
class TakenPort {
 public:
  TakenPort();
  ~TakenPort();
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  int number() const { return number_; }

 private:
  int socket_, number_;
};

}  // namespace st
