// A transport in a separate shared library: libscaletrain_gloo.so, libscaletrain_mpi.so.
#pragma once

#include <scaletrain/transport.h>

#include <functional>
#include <memory>
#include <string>

#include "comm/pipes/pipes.h"

namespace st {

class TransportPlugin {
 public:
  /// Loads the plug-in `name` ("gloo", "mpi" or another one) and never unloads it. Throws unavailable: naming what is missing and how to
  /// get it, or both versions if the plug-in was built for another one.
  explicit TransportPlugin(const std::string& name);

  /// The path that is loaded: in the folder $SCALETRAIN_PLUGINS if that is set, else in this library's folder.
  static std::string file_of(const std::string& name);

  const std::string& name() const { return name_; }
  std::string library() const { return plugin_->library; }  // "Gloo 0.5.0"

  struct Start {
    int rank = -1, size = -1;     // -1: the transport knows them
    std::string master_host;      // rank 0's; empty: not given
    int master_port = 0;          // 0: not given
    const void* group = nullptr;  // the host's own group, such as an MPI_Comm*; null: none; borrowed
    double patience = 60;         // seconds
    std::function<bool()> is_cancelled = {};
  };
  /// Connects to the other ranks. Throws the plug-in's error, with the rank at fault: timeout, rank_failed, rank_mismatch, busy,
  /// wrong_state, invalid_argument, io, cancelled.
  std::unique_ptr<Pipes> open(const Start& start) const;

 private:
  std::string name_;
  const st_plugin* plugin_ = nullptr;
};

}  // namespace st
