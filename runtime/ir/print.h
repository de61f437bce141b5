// Prints a program as text for --explain and for golden tests: sections, slots by role, one node per line in a stable form.
#pragma once

#include <string>

#include "ir/program.h"

namespace st {

std::string print(const Program& program);
std::string print(const Program& program, const Section& section, int32_t node);  // one line

}  // namespace st
