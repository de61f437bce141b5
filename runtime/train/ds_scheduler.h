// The scheduler of a ds_config.json as a schedule of ours.
#pragma once

#include "train/ds_config.h"
#include "train/ds_section.h"

namespace st {

/// WarmupLR, WarmupDecayLR and WarmupCosineLR as an lr_table: DeepSpeed rises logarithmically or linearly from warmup_min_lr, is a step
/// behind what it counts, and has no schedule of ours exactly, but each of its steps. Where warmup_num_steps, total_num_steps or
/// warmup_max_lr is "auto", the run says it, and the schedule is ours: constant, linear or cosine. `lr`: the optimizer's. Throws as
/// read_ds_config().
void read_ds_scheduler(DsSection& file, double lr, DsRecipe& recipe);

}  // namespace st
