// The plan of one rank of a run, on a machine that need not be there, and what it says: memory, bytes to send, arithmetic, time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/wire_bytes.h"
#include "planner/step_trace.h"
#include "recipe/recipe.h"

namespace st {

/// A run that is planned. Nothing is allocated for it, and no rank is started.
struct PlannedRun {
  Program model;  // symbolic, as a builder or a host makes it
  Recipe recipe;  // ranks: of all kinds
  Machine machine;
  bool by_threads = false;       // the ranks are threads of one process, as with `scaletrain train --ranks`; else processes
  bool late_parameters = false;  // as the context option: ranks with shards make only these

  Mesh mesh() const { return mesh_of(recipe); }
  Placement placement() const { return {machine.ranks_per_node, recipe.ranks}; }
  int64_t ranks_per_node() const { return by_threads ? recipe.ranks : machine.ranks_per_node; }  // threads of one process are in one node
  int32_t threads() const;                // of a rank: the recipe's, or the node's cores divided by its ranks
  int64_t device_memory_of_rank() const;  // bytes that a rank may use; cpu: its share of the node's
  int64_t whole_on_host() const;          // bytes of the model that the first of ranks that are threads has there besides its shards
  int64_t share_of_whole() const;  // bytes of a rank: of the whole model that ranks that are threads have together besides their parameters
  double tokens_per_step() const;  // rows of the loss, of all ranks
};

/// Bytes by arena; host: what is offloaded, and PlannedRun::whole_on_host().
struct PlannedMemory {
  std::array<int64_t, kArenas> device{}, host{};
  int64_t file = 0, reserved = 0;
  int64_t inputs = 0, pinned = 0;  // a device's copy of the rows of a micro-batch, and the host's memory through which it goes up
  int64_t terms = 0;               // of sums over ranks: what other devices send, or copies of own terms (exchange_memory.h)
  int64_t network = 0;             // of what is reserved: the network's own buffers, an estimate
  int64_t recordings = 0;          // of kernels, which a device keeps as graphs: an estimate
  int64_t device_total() const;    // with what is reserved
  int64_t host_total() const;
};

/// The traffic of a rank in a step.
struct AxisTraffic {
  int64_t bytes = 0, collectives = 0;  // along the stage axis also messages
  int64_t nodes = 1;                   // on which the ranks of the group are; a collective uses links between nodes if there are several
  LinkBytes direct, native;            // the bytes by link: as the direct exchange sends, and as NCCL's rings would (SentByLink)
};

/// Sums over the instructions of a rank.
struct RankNumbers {
  PlannedMemory memory;
  std::array<AxisTraffic, kMeshAxes> traffic;  // by MeshAxis
  int64_t instructions = 0;
  double flops = 0;           // of products and attention in a step, repeated ones included
  double repeated_flops = 0;  // of them, by recomputation
};

/// The seconds of a step by what the rank does in them.
struct StepShares {
  double computing = 0;
  std::array<double, kMeshAxes> exchange{};  // that computing does not hide, by MeshAxis
  double bubble = 0;                         // the schedule leaves this rank without work
  double all() const;
};

/// A rank without other stages: collectives take their own time, messages none.
StepShares shares_alone(const RankTrace& trace);

/// The same, with the bubble of its schedule if the other stages take as long as this one. pipeline_lane.h knows the other stages.
StepShares shares_of(const RankTrace& trace, const Recipe& recipe);

struct RankPlan {
  MeshPosition at;
  Plan plan;
  RankNumbers numbers;
  RankTrace trace;

  /// Without knowing other ranks: the step of a rank of a pipeline is longer (pipeline_lane.h).
  StepShares shares(const Recipe& recipe) const { return shares_of(trace, recipe); }
  double step_seconds(const Recipe& recipe) const { return shares(recipe).all(); }
  /// The share of it that is bubble.
  double bubble(const Recipe& recipe) const;
};

/// Throws invalid_argument for a rank outside the run, and what planning throws; unavailable for a machine without rates. `begun`: shared
/// by plans of this run's ranks, which are made faster then. Several threads may use it once a rank of the same tensor rank is planned.
RankPlan plan_of_rank(const PlannedRun& run, int32_t rank, BegunPlans* begun = nullptr);
/// Whether planning threw this because the model, the machine or its memory does not allow the recipe: another recipe may be tried.
bool is_of_recipe(const Error& error);

/// The seconds that one rank alone would take for the same rows, whether they fit or not.
double seconds_on_one_rank(const PlannedRun& run);

}  // namespace st
