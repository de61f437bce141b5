#include "base/file_error.h"

#include <cerrno>

#include "base/os.h"
#include "base/text.h"

namespace st::os {

void fail_file(Code code, const char* what, const std::string& path, int reason, int64_t offset) {
  Error error(code, offset < 0 ? text(what, " ", path, ": ", reason_of(reason))
                               : text(what, " ", path, " at byte ", offset, ": ", reason_of(reason)));
  error.place.file = path;
  error.place.offset = offset;
  throw error;
}

void fail_file(const char* what, const std::string& path, int reason, int64_t offset) {
  fail_file(reason == ENOENT ? Code::not_found : Code::io, what, path, reason, offset);
}

}  // namespace st::os
