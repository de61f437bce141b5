// One step of all ranks of a run, simulated: who waits for whom, and when the step ends.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/mesh.h"
#include "planner/step_trace.h"

namespace st {

/// How a rank differs from its class: a straggler computes, or a slow link carries, so many times as long.
struct RankPace {
  double computing = 1, exchange = 1;
  double messages = 1;  // of the pipeline's messages, times `exchange`
};

struct SimulatedRank {
  double ended = 0;     // seconds from the begin of the step
  double computed = 0;  // of them
  double waited = 0;    // for messages and collectives, which computing did not hide
};

/// One thing that a rank does, from when to when, for timelines.
struct SimulatedSpan {
  int32_t rank = 0;
  TraceEvent::Kind kind = TraceEvent::Kind::compute;
  int32_t section = -1, micro_batch = -1;
  double began = 0, ended = 0;
};

/// A collective of one rank, from when the rank arrives to its end, while the rank computes or not.
struct SimulatedCollective {
  int32_t rank = 0;
  int32_t collective = -1;  // index in RankTrace::collectives
  double began = 0, ended = 0;
};

struct Simulation {
  Mesh mesh;
  std::span<const StageLink> links;                           // of the pipeline; each joins ranks of the same data and tensor index
  std::function<const RankTrace&(int32_t rank)> trace;        // of a rank of the mesh
  std::function<RankPace(int32_t rank)> pace = {};            // empty: all alike
  std::function<void(const SimulatedSpan& span)> watch = {};  // called for each span as it ends, in the order of each rank; empty: nobody
  std::function<void(const SimulatedCollective& collective)> watch_collective = {};  // called as each ends; empty: nobody
};

struct SimulatedStep {
  std::vector<SimulatedRank> ranks;  // by rank of the mesh
  double seconds() const;            // until the last rank ends
  /// The mean share of the step in which ranks compute nothing.
  double idle() const;
};

/// Runs the events of all ranks:
/// - a collective begins when the last of its ranks arrives, and ends after the longest of their times; those of the data axis are made in
///   order, posted ones beside computing
/// - a message leaves when it is sent and the one before it on its link has left, and arrives after its time
/// Throws internal with the ranks and what they wait for, if no rank can go on; or with two ranks and their collectives, if the ranks of a
/// group make collectives of different names, labels, types or sizes.
SimulatedStep simulate(const Simulation& run);

}  // namespace st
