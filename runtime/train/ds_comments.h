// The comments of a ds_config.json, which DeepSpeed reads as Hjson.
#pragma once

#include <string>
#include <string_view>

namespace st {

/// The text with comments (#, // to the end of a line, /* */) and commas after a last entry turned into spaces, so that places in it stay
/// where they were. What is inside strings stays. Of Hjson (https://hjson.github.io) nothing else: quotes and commas are needed.
std::string without_comments(std::string_view text);

}  // namespace st
