// A trainer's content of a checkpoint: weights, optimizer state, averages, progress of the run, recipe.
#pragma once

#include "checkpoint/checkpoint_manager.h"
#include "train/trainer.h"

namespace st {

/// For CheckpointManager::save, between two steps (Trainer::require_whole_step). Borrows the trainer and blocks changes of the model's
/// weights while it lives: destroy it as soon as they are copied, before this thread's next step. Throws busy while another trainer of the
/// model has an unfinished update.
/// With Trainer::exchanges_ranges(), exchange_ranges() must follow.
/// `group`: the ranks that save together, each its own part; null: this rank saves everything. Without it, the ranks over which the state
/// is sharded.
CheckpointContent content_of(const Trainer& trainer, Metadata metadata, Communicator* group);
CheckpointContent content_of(const Trainer& trainer, Metadata metadata);

/// Collective call: gets this rank's ranges of tensors that other ranks have, into memory that `content` keeps. Throws out_of_memory on all
/// ranks.
void exchange_ranges(const Trainer& trainer, CheckpointContent& content);

}  // namespace st
