// Reads the scheduler section of a ds_config.json as recipe keys.
#pragma once

#include "recipe/ds_config.h"
#include "recipe/ds_section.h"

namespace st {

/// WarmupLR, WarmupDecayLR and WarmupCosineLR become an lr_table with the rate of every step, because no lr_schedule matches them exactly:
/// DeepSpeed rises logarithmically or linearly from warmup_min_lr and applies each rate one step late. If warmup_num_steps, total_num_steps
/// or warmup_max_lr is "auto", the run decides it and the lr_schedule is constant, linear or cosine. `lr`: the optimizer's. Throws like
/// read_ds_config().
void read_ds_scheduler(DsSection& file, double lr, DsRecipe& recipe);

}  // namespace st
