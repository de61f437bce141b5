// Where a test finds plug-ins, and ports for their ranks to meet at.
#pragma once

#include <string>

#include "comm/plugins/transport_plugin.h"

namespace st {

/// From the build's folder.
TransportPlugin plugin_of(const std::string& name);
/// Why it cannot be had; empty: it can.
std::string why_no_plugin(const std::string& name);

/// A port of this machine at which nobody listens, and which others do not get for a while.
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
