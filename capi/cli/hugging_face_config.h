// config.json of a Hugging Face folder, next to its weights.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// The config.json in the folder of this weights file; "" if there is none.
std::string config_next_to(const std::string& weights);
/// In the form that ModelChoice takes: {"name": .., "options": {..}}; `model` is gpt2 or llama-hf. Throws Failure(kRefused) that names the
/// file if it is not a JSON object.
Json read_config(const std::string& path, const std::string& model);

}  // namespace cli
