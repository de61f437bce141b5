// Patterns of names: "block.*.mlp.*". * matches any text, also none; ? matches one character; nothing else is special.
#pragma once

#include <string_view>

namespace st {

bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace st
