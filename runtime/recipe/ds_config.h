// Reads DeepSpeed's ds_config.json as a recipe. Meanings and defaults are DeepSpeed's: https://www.deepspeed.ai/docs/config-json, or its
// runtime/lr_schedules.py and runtime/fp16/loss_scaler.py where that page says nothing. README.md of this folder has the table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace st {

/// A file's settings as recipe keys.
struct DsRecipe {
  void set(const char* key, std::string json);

  std::vector<std::pair<std::string, std::string>> keys;  // of recipe.def, and their values as JSON
  std::vector<std::string> notes;                         // to be logged once: settings that are accepted or have no effect here
};

/// Top-level keys of a ds_config that are not recipe keys.
const std::vector<std::string>& ds_config_keys();

/// Whether the JSON has a key that only DeepSpeed has, or fp16, bf16, optimizer or scheduler as an object.
bool is_ds_config(const Json& json);

/// "auto" counts as not given, with the recipe's default. Throws invalid_argument: an unknown key (suggests the nearest), a value of the
/// wrong type, keys that contradict each other (with the arithmetic); unsupported, with an alternative: settings that ScaleTrain cannot
/// follow exactly.
DsRecipe read_ds_config(const Json& json);

}  // namespace st
