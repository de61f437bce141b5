// The folder of this library, where its plug-ins are installed.
#pragma once

#include <string>

namespace st::os {

/// The folder of the shared library or program that contains this code, without a trailing slash; "." if it is unknown.
std::string folder_of_this_library();

}  // namespace st::os
