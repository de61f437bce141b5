// Where this library lies: what belongs to it is beside it.
#pragma once

#include <string>

namespace st::os {

/// The folder of the shared library, or of the program, that this code is in: without a slash at its end. "." where that cannot be told.
std::string folder_of_this_library();

}  // namespace st::os
