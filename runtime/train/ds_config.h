// DeepSpeed's ds_config.json as a recipe. Meanings and defaults are DeepSpeed's: https://www.deepspeed.ai/docs/config-json, and its
// runtime/lr_schedules.py and runtime/fp16/loss_scaler.py where that page is silent. README.md of this folder has the table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace st {

/// What a file says, in our words.
struct DsRecipe {
  void set(const char* key, std::string json);

  std::vector<std::pair<std::string, std::string>> keys;  // of recipe.def, and their values as JSON
  std::vector<std::string> notes;                         // what to tell once: what is accepted, and what means nothing here
};

/// Keys at the top of a ds_config that no recipe of ours has.
const std::vector<std::string>& ds_config_keys();

/// By its keys: one that only DeepSpeed has, or fp16, bf16, optimizer or scheduler as an object.
bool is_ds_config(const Json& json);

/// "auto" is as good as not given, but that our default stands in its place. Throws invalid_argument: a key that is none (the nearest is
/// named), a value of the wrong kind, keys that contradict each other (with the arithmetic); unsupported: what would train otherwise than
/// it says, with what to use here.
DsRecipe read_ds_config(const Json& json);

}  // namespace st
