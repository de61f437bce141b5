// config.json of a folder of Hugging Face's, next to its weights.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// That of the folder in which a file of weights lies; "": there is none.
std::string config_beside(const std::string& weights);
/// As ModelChoice takes it: {"name": "gpt2", "options": {..}}. Throws Failure(kRefused), with the file, for what is no JSON object.
Json read_config(const std::string& path);

}  // namespace cli
