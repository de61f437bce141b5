// The version of this library, as in files and messages.
#pragma once

#include <string_view>

namespace st {

std::string_view library_version();  // "0.1.0"

}  // namespace st
