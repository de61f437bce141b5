#include "base/library_version.h"

namespace st {

std::string_view library_version() { return ST_LIBRARY_VERSION; }

}  // namespace st
