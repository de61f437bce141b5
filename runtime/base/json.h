// JSON in: a parser whose errors name the text and the place. Include it in .cpp files only; no header of ours shows nlohmann's.
// For JSON out, one line at a time, see json_line.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace st {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// Throws invalid_argument: "<what>: line 3, column 7: ...". A key given twice is refused: of two values one would be dropped silently.
Json parse_json(std::string_view text, std::string_view what);

}  // namespace st
