// The parts of the report's page that are the same in every run.
#pragma once

#include <string_view>

namespace st {

extern const std::string_view kReportStyle;   // CSS
extern const std::string_view kReportScript;  // JavaScript: shows the values under the pointer

}  // namespace st
