// How the processes of a group find each other.
#pragma once

#include <memory>

#include "comm/local/heartbeat.h"
#include "comm/local/process_group.h"
#include "comm/local/shared_segment.h"

namespace st {

/// A rank's place in a segment in which all are. The heart beats in the segment, and stops before that is unmapped.
struct Meeting {
  SharedSegment segment;
  std::unique_ptr<Heartbeat> heart;
};

/// Comes into the segment of the job, or makes it, and waits for the others: process_group.h has the errors.
Meeting meet(const ProcessGroupOptions& options);

}  // namespace st
