// Which checkpoints of a run are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace st {

struct Retention {
  int64_t last = 3;   // keep this many of the newest; 0: all
  int64_t every = 0;  // also keep those whose step is a multiple of it; 0: none
  int64_t best = 0;   // also keep this many of the best by a metric
  bool higher_is_better = false;
};

struct RetainedCheckpoint {
  std::string name;
  int64_t step = 0;
  std::optional<double> metric;  // nullopt: absent or NaN
  bool valid = true;             // false: found corrupt; does not count towards `last`
  bool finite = true;            // its weights are finite
  bool has_loss = true;          // the training object's loss is a number; not so once a run skips every step
  std::string model = {};        // digest of the trainer's graph; "": a host's tensors, or not known
  bool earlier = false;          // was in the folder when it was opened, and nothing continues from there
};

/// A valid checkpoint. `best`: the key of the metric, in the metadata or the training object; "": none.
RetainedCheckpoint retained(const std::string& name, const Manifest& manifest, const std::string& best);

/// Whether retention counts `checkpoint` after a save of `newest`. An earlier one and one of another model are another run's: they are
/// neither counted nor removed.
bool is_of_same_run(const RetainedCheckpoint& checkpoint, const RetainedCheckpoint& newest);

/// Returns the names to remove, oldest first. `all`: newest first; considers those of the newest one's run.
/// - Always keeps the newest valid one and, for runs that diverge, the newest valid one with finite weights and the newest of those whose
///   loss was finite too.
/// - Among equally good ones keeps the newer.
/// - Removes a corrupt one once it is older than all that `last` keeps.
std::vector<std::string> to_remove(const Retention& retention, const std::vector<RetainedCheckpoint>& all);

}  // namespace st
