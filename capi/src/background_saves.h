// Saves that a trainer makes by itself between two steps: st_trainer_save_every.
#pragma once

#include <functional>

#include "local_call.h"
#include "trainer_object.h"

namespace st::capi {

/// The ranks that save together; null: this rank saves alone.
Communicator* saving_group_of(const TrainerObject& trainer, Reach reach);

/// Runs `call`, which checks the arguments of a save. If it throws, ranks that save together learn of the failure when they synchronise.
void before_save(Communicator* group, const std::function<void()>& call);

/// Saves the whole state of a trainer between two steps to the checkpoint's folder. `group`: saving_group_of(). Throws as
/// CheckpointManager::save does.
std::shared_ptr<Pending> save_in_background(const TrainerObject& trainer, Communicator* group, CheckpointManager& manager,
                                            Metadata metadata, const std::function<bool()>& is_cancelled);
/// Returns when the checkpoint is on disk.
void save_now(const TrainerObject& trainer, Communicator* group, CheckpointManager& manager, Metadata metadata,
              const std::function<bool()>& is_cancelled = {});

/// Allocates the memory for the copies of background saves, if that is possible now.
void prepare_saves(const TrainerObject& trainer, Communicator* group, CheckpointManager& manager) noexcept;

/// Call after a whole step, while this call holds the weights. Saves if a save is due, and records in trainer.saves what the step's report
/// says about this and earlier saves. Never throws, since the step is done: errors go into the report. Returns the report.
StepReport saved(TrainerObject& trainer, const StepReport& report) noexcept;
std::optional<StepReport> saved(TrainerObject& trainer, const std::optional<StepReport>& report) noexcept;

}  // namespace st::capi
