// The constant parts of the report's page.
#pragma once

#include <string_view>

namespace st {

extern const std::string_view kReportStyle;   // CSS
extern const std::string_view kReportScript;  // JavaScript: shows the values under the pointer

}  // namespace st
