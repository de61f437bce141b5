// The start of a process group: how its processes find each other.
#pragma once

#include <memory>

#include "comm/local/heartbeat.h"
#include "comm/local/process_group.h"
#include "comm/local/shared_segment.h"

namespace st {

/// The segment that all ranks have joined, and this rank's heartbeat in it. The heartbeat stops before the segment is unmapped.
struct Rendezvous {
  SharedSegment segment;
  std::unique_ptr<Heartbeat> heart;
};

/// Joins the segment of the job, or creates it, and waits for the other ranks. Errors: see join_process_group().
Rendezvous meet(const ProcessGroupOptions& options);

}  // namespace st
