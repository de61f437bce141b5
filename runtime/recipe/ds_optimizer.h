// Reads the optimizer section of a ds_config.json as recipe keys.
#pragma once

#include "recipe/ds_config.h"
#include "recipe/ds_section.h"

namespace st {

/// Returns the section's learning rate, given or DeepSpeed's default. Throws like read_ds_config().
double read_ds_optimizer(DsSection& file, DsRecipe& recipe);

}  // namespace st
