// Ranks that reach each other by pipes of others: over a plug-in, or by means of the host's.
#pragma once

#include <functional>
#include <memory>

#include "comm/pipes/pipes.h"
#include "comm/transport.h"

namespace st {

struct PipeGroupOptions {
  double patience = 60;                     // seconds to wait for the others at the start
  std::function<bool()> is_cancelled = {};  // looked at while it waits
};

constexpr int kMostPipeRanks = 4096;

/// What a rank has in memory for what has come from the others; what carries the pipes has its own beside it.
int64_t pipe_group_bytes(int size);

/// Says who is here and waits for the others to say it. Throws timeout naming the ranks that have not, rank_failed where one ended
/// meanwhile, rank_mismatch with both sides where one came with another size or version of this library, cancelled.
///
/// A rank that dies is known as soon as its pipe breaks, or else silent. Starts a thread, which shows the others that this rank lives while
/// it computes. An end that goes waits up to a second for the others to hear of it, so that nobody takes it for one that died.
std::unique_ptr<Transport> join_pipe_group(std::unique_ptr<Pipes> pipes, const PipeGroupOptions& options);

}  // namespace st
