// Resumes a trainer from a checkpoint.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "model/weights_match.h"
#include "train/trainer.h"

namespace st {

struct ResumeReport : ReadReport {   // of weights and optimizer state
  std::vector<std::string> changed;  // keys of the recipe that differ: "lr: 0.001 here, 0.0003 in the checkpoint"
};

/// Loads weights, optimizer state and everything else that a step depends on, so that later steps are bitwise equal to those of the
/// uninterrupted run, on any number of threads.
///   must match       seed, batch, micro-batches, data (invalid_argument with both values); names, dtypes and shapes of the state
///   may differ       the other recipe keys; the report lists them
///   loss scale       continues if the recipe keys that it depends on are unchanged, else restarts from the recipe
///   schedule         a host's own schedule must be set by the host again
///   partial          loads what matches; a missing moment keeps its value, a missing average starts from its weight
///   renames, names   refer to parameters; their state follows them
///   host's tensors   a checkpoint without a training state is matched by name: weights, and state as "moment1.<parameter>". Only its step
///                    is known, counted as successful steps on the data's stream. NaN in them is refused (not_finite)
///   weights only     without partial: optimizer state and average restart with the next update, and the report says so
///   sharded          (Trainer::is_sharded) a collective call; each rank reads its shards, and an error on one rank fails on all
/// Throws wrong_state during a step, corrupt with file, tensor and block, cancelled, and invalid_argument if the checkpoint does not fit:
/// never not_found, from which hosts conclude that the folder holds no checkpoint. After an error nothing has changed.
void resume(Trainer& trainer, const CheckpointReader& reader, const ReadOptions& options, ResumeReport& report);

/// The same if opening the checkpoint may fail, perhaps only on one rank.
using OpenCheckpoint = std::function<const CheckpointReader&()>;
void resume(Trainer& trainer, const OpenCheckpoint& open, const ReadOptions& options, ResumeReport& report);

}  // namespace st
