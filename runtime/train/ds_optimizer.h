// The optimizer of a ds_config.json as one of ours.
#pragma once

#include "train/ds_config.h"
#include "train/ds_section.h"

namespace st {

/// Returns the learning rate that it has, given or its default. Throws as read_ds_config().
double read_ds_optimizer(DsSection& file, DsRecipe& recipe);

}  // namespace st
