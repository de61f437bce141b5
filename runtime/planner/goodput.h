// Goodput: the share of a long run's time that is left by lost nodes and by the checkpoints against them. The run is simulated, step by
// step, from one lost node to the next.
#pragma once

#include <cstdint>
#include <vector>

namespace st {

/// Lost nodes of a run, and its checkpoints.
struct Failures {
  double hours_between = 0;         // that a node runs until it is lost, on average; 0: none is lost but at `lost_at`
  double restart_seconds = 300;     // until ranks compute again; a node that is lost meanwhile begins it anew
  double save_seconds = 0;          // that a checkpoint blocks the step
  int64_t steps_between_saves = 0;  // the last step is saved too; 0: the number with the best goodput, over 2,000 lost nodes
  int64_t steps = 0;                // of the run; 0: until about 2,000 nodes are lost
  int64_t seed = 0;                 // of the times at which nodes are lost, which are independent of each other
  std::vector<double> lost_at;      // seconds from the begin of the run at which a node is lost too, rising
};

struct Goodput {
  double share = 1;  // of the time makes progress that lasts
  int64_t steps_between_saves = 0;
  int64_t steps = 0;       // that last
  int64_t lost_nodes = 0;  // and restarts, a restart begun anew included
  int64_t lost_steps = 0;  // made since the last checkpoint when a node was lost, the broken one included: made again
  int64_t saves = 0;
  double seconds = 0;  // of the run, and of them:
  double saving = 0, repeating = 0, restarting = 0;
  bool ends = true;  // false: given up after 100,000 lost nodes
};

/// The run on `nodes` nodes. The same arguments give the same run, and runs that save at other intervals lose nodes at the same times.
Goodput goodput(double step_seconds, int64_t nodes, const Failures& failures);

}  // namespace st
