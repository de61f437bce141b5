// What a checkpoint keeps of a trainer: weights, optimizer state and averages, where the run stands, its recipe.
#pragma once

#include "checkpoint/checkpoint_manager.h"
#include "train/trainer.h"

namespace st {

/// For CheckpointManager::save, between two steps (Trainer::require_whole_step). Borrows the trainer, and while it lives nobody changes the
/// model's weights: let go of it as soon as they are copied, and before this thread's next step. Throws busy while another trainer of the
/// model has left an update half done.
CheckpointContent content_of(const Trainer& trainer, Metadata metadata);

}  // namespace st
