// A trainer goes on where a checkpoint's was.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "train/trainer.h"
#include "train/weights_match.h"

namespace st {

struct ResumeReport : ReadReport {   // of weights and optimizer state
  std::vector<std::string> changed;  // keys of the recipe that differ: "lr: 0.001 here, 0.0003 in the checkpoint"
};

/// Makes weights, optimizer state and all else that a step depends on the checkpoint's, so that the steps from here on are, bit by bit,
/// those of the run that was not interrupted, on any number of threads. Seed, batch, micro-batches and data must be the checkpoint's
/// (invalid_argument with both values), and so must names, dtypes and shapes of what there is of state; the rest of the recipe may differ,
/// and is reported. A loss scale goes on where the keys that it follows are the checkpoint's; else it begins as the recipe says. A host's
/// own schedule is the host's to set.
/// partial: what fits is loaded; a moment that the checkpoint does not have stays what it is, and an average that it does not have begins
/// as its weight. Renames and names are those of parameters, and their state follows them. A checkpoint of a host's own tensors, without a
/// training state, is taken by their names: weights, and state as "moment1.<parameter>"; of the run only its step is known then, as so many
/// successful ones on the data's stream. Weights alone (not partial) are trained from: the optimizer's state, and an average, begin anew
/// with the next update, and the report says so. No NaN is taken from a host's tensors (not_finite). Throws wrong_state while a step is
/// under way, corrupt with file, tensor and block, cancelled. After an error all is as it was. Of a trainer that has pieces
/// (Trainer::is_in_pieces) all ranks call, each reads its own, and what fails on one fails on all.
void resume(Trainer& trainer, const CheckpointReader& reader, const ReadOptions& options, ResumeReport& report);

/// The same where opening may fail, on one rank perhaps.
using OpenCheckpoint = std::function<const CheckpointReader&()>;
void resume(Trainer& trainer, const OpenCheckpoint& open, const ReadOptions& options, ResumeReport& report);

}  // namespace st
