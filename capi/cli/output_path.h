// Paths that a run writes to, checked before it begins: an hour of training must not end with a file that cannot be written, nor start by
// truncating its own data.
#pragma once

#include <string>

namespace cli {

/// Refuses a path that `option` names inside the data folder `data`, if it is one: the next run would train on what this one writes, and so
/// differ. Throws Failure(kRefused).
void check_outside_data(const std::string& option, const std::string& path, const std::string& data);

/// Refuses a file that cannot be written, is the data or lies in its folder. `path` "": none. Throws Failure(kRefused).
void check_output(const std::string& option, const std::string& path, const std::string& data);

}  // namespace cli
