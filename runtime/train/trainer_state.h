// A trainer's content of a checkpoint: weights, optimizer state, averages, progress of the run, recipe.
#pragma once

#include "checkpoint/checkpoint_manager.h"
#include "train/trainer.h"

namespace st {

/// For CheckpointManager::save, between two steps (Trainer::require_whole_step). Borrows the trainer and blocks changes of the model's
/// weights while it lives: destroy it as soon as they are copied, before this thread's next step. Throws busy while another trainer of the
/// model has an unfinished update.
CheckpointContent content_of(const Trainer& trainer, Metadata metadata);

}  // namespace st
