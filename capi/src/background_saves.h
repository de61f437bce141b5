// What a trainer saves by itself, between two steps: st_trainer_save_every.
#pragma once

#include <functional>

#include "trainer_object.h"

namespace st::capi {

/// Looks at what a save needs. The others of those that save together are about to meet, and hear there what has failed here.
void before_save(const TrainerObject& trainer, const std::function<void()>& call);

/// All that is saved of a trainer between two steps, into the checkpoint's folder. Throws as CheckpointManager::save.
std::shared_ptr<Pending> save_in_background(const TrainerObject& trainer, CheckpointManager& manager, Metadata metadata,
                                            const std::function<bool()>& is_cancelled);
/// Returns when it is on the disk.
void save_now(const TrainerObject& trainer, CheckpointManager& manager, Metadata metadata, const std::function<bool()>& is_cancelled = {});

/// Makes room for the copies that saves in the background take, where that can be done now.
void prepare_saves(const TrainerObject& trainer, CheckpointManager& manager) noexcept;

/// After a whole step, while the weights are this call's: saves when it is time, and keeps in trainer.saves what the step's report is to
/// tell of this and earlier saves. Whatever goes wrong is told there: the step is done. Returns the report.
StepReport saved(TrainerObject& trainer, const StepReport& report) noexcept;
std::optional<StepReport> saved(TrainerObject& trainer, const std::optional<StepReport>& report) noexcept;

}  // namespace st::capi
