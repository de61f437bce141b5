// A rank's step as events with their times: what it computes, and where it meets other ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mesh.h"
#include "plan/plan.h"
#include "planner/target_machine.h"

namespace st {

struct TraceEvent {
  enum class Kind : uint8_t { compute, exchange, post, await, send, release, receive };
  Kind kind = Kind::compute;
  MeshAxis axis = MeshAxis::data;  // exchange, post: the ranks that take part
  int32_t link = -1;               // send, receive: index in the program's links
  int32_t number = -1;             // post, await, exchange: among the collectives of the data axis; release: among the sends of its link
  int32_t section = -1, micro_batch = -1;  // compute: for pictures
  int32_t collective = -1;                 // exchange, post: index in RankTrace::collectives
  double seconds = 0;                      // compute; exchange, post and send: on the wire, once all are there
  double latency = 0;                      // send: what of these seconds does not depend on the link's rate
};

/// A collective as the rank's communicator records and compares it: "reduce_scatter", its label, the type and the bytes of all elements.
struct NamedCollective {
  const char* name = "";
  std::string label;
  DType dtype = DType::f32;
  int64_t bytes = 0;
};

/// The events of one step, in order. Kernels in a row of one section and micro-batch are one event.
struct RankTrace {
  std::vector<TraceEvent> events;
  std::vector<Phase> phases;    // by section
  std::vector<int32_t> chunks;  // by section
  std::vector<NamedCollective> collectives;
  double seconds_of(TraceEvent::Kind kind) const;
};

/// Where the ranks of a run are, for the links between them.
struct Placement {
  int32_t ranks_per_node = 1;
  int64_t ranks = 1;
};

/// Bytes a second that each rank of a group along `axis` can send while all do: in a ring over nodes, the members in one node share the
/// links of the devices that the group has there.
LinkRate link_of_group(const Machine& machine, const Mesh& mesh, MeshAxis axis, const Placement& at);

struct TraceTask {
  int64_t micro_batches = 1;  // full ones of a step, over all data ranks
  const Machine& machine;
  Placement at = {};
  int32_t threads = 1;  // of a rank
};

/// The events of a usual step, which makes no copies that last. Throws unavailable for a machine without rates.
RankTrace trace_of(const Plan& plan, const TraceTask& task);

}  // namespace st
