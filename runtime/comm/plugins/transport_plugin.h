// A transport in a shared library of its own, beside this one: libscaletrain_gloo.so, libscaletrain_mpi.so.
#pragma once

#include <scaletrain/transport.h>

#include <functional>
#include <memory>
#include <string>

#include "comm/pipes/pipes.h"

namespace st {

class TransportPlugin {
 public:
  /// `name`: "gloo", "mpi", or another one's. Looked for in the folder $SCALETRAIN_PLUGINS, then beside this library. Loads it for good.
  /// Throws unavailable with what is missing, and how to get it; or with both versions, where it is another version's.
  explicit TransportPlugin(const std::string& name);

  /// Where it is looked for.
  static std::string file_of(const std::string& name);

  const std::string& name() const { return name_; }
  std::string library() const { return plugin_->library; }  // "Gloo 0.5.0"

  struct Start {
    int rank = -1, size = -1;     // -1: the transport knows them
    std::string master_host;      // rank 0's; empty: not said
    int master_port = 0;          // 0: not said
    const void* group = nullptr;  // the host's own
    double patience = 60;         // seconds
    std::function<bool()> is_cancelled = {};
  };
  /// Meets the other ranks. Throws what the plug-in says, with the rank whose fault it is: timeout, rank_failed, rank_mismatch, busy,
  /// wrong_state, invalid_argument, io, cancelled.
  std::unique_ptr<Pipes> open(const Start& start) const;

 private:
  std::string name_;
  const st_plugin* plugin_ = nullptr;
};

}  // namespace st
