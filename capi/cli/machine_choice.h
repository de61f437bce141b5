// The machine of --machine: a name that the library knows, or a file of `scaletrain bench --calibrate FILE`.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// The value of the option "machine" of st_plan_create. Throws Failure(kRefused) for a file that cannot be read or is no JSON object.
Json machine_choice(const std::string& value);

}  // namespace cli
