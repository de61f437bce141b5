// scaletrain launch: local processes as ranks.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace cli {

/// Of `launch [options] [--] PROGRAM ...`: PROGRAM and all that follows it, which are no options of ours. They are cut off from what argc
/// and argv say.
std::vector<std::string> take_launched_program(int& argc, char** argv);

Command launch_command(CLI::App& app, const std::vector<std::string>& program);

}  // namespace cli
