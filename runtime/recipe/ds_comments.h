// Removes the comments of a ds_config.json, which DeepSpeed reads as Hjson.
#pragma once

#include <string>
#include <string_view>

namespace st {

/// Replaces comments (#, // to the end of a line, /* */) and trailing commas by spaces, so that positions in the text do not change.
/// Strings are untouched. Other Hjson (https://hjson.github.io) is not supported: quotes and commas are required.
std::string without_comments(std::string_view text);

}  // namespace st
