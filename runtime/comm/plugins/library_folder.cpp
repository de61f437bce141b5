#include "comm/plugins/library_folder.h"

#include <dlfcn.h>

// Weak, because a fully static program has no dynamic loader.
#pragma weak dladdr

namespace st::os {

std::string folder_of_this_library() {
  static const char kHere = 0;
  Dl_info found{};
  if (&dladdr == nullptr || dladdr(&kHere, &found) == 0 || found.dli_fname == nullptr) return ".";
  const std::string file = found.dli_fname;
  const size_t end = file.rfind('/');
  return end == std::string::npos ? "." : file.substr(0, end);
}

}  // namespace st::os
