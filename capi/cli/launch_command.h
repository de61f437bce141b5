// scaletrain launch: local processes as ranks.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace cli {

/// Removes PROGRAM and its arguments from argc and argv of `launch [options] [--] PROGRAM ...`, and returns them.
std::vector<std::string> take_launched_program(int& argc, char** argv);

Command launch_command(CLI::App& app, const std::vector<std::string>& program);

}  // namespace cli
