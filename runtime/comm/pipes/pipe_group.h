// A group over pipes that a plug-in or the host provides.
#pragma once

#include <functional>
#include <memory>

#include "comm/pipes/pipes.h"
#include "comm/transport.h"

namespace st {

struct PipeGroupOptions {
  double patience = 60;                     // seconds to wait for the others at the start
  std::function<bool()> is_cancelled = {};  // polled while it waits
};

constexpr int kMostPipeRanks = 4096;

/// Bytes of a rank's receive buffers; the pipes themselves need more.
int64_t pipe_group_bytes(int size);

/// Introduces this rank to the others and waits until they have introduced themselves. Throws timeout, naming the ranks that did not;
/// rank_failed if one ended meanwhile; rank_mismatch with both sides if one has another size or library version; cancelled.
///
/// A rank that dies is noticed as soon as its pipe breaks; otherwise it is silent. Starts a thread, which shows the others that this rank
/// is alive while it computes. The destructor waits up to a second until the others know that this rank leaves, so that none takes it for
/// dead.
std::unique_ptr<Transport> join_pipe_group(std::unique_ptr<Pipes> pipes, const PipeGroupOptions& options);

}  // namespace st
