#include "base/file_error.h"

#include <cerrno>
#include <utility>

#include "base/os/machine.h"
#include "base/text.h"

namespace st::os {

void fail_at_file(Code code, const std::string& path, std::string message, int64_t offset) {
  Error error(code, std::move(message));
  error.place.file = path;
  error.place.offset = offset;
  throw error;
}

void fail_file(Code code, const char* what, const std::string& path, int reason, int64_t offset) {
  const std::string at = offset < 0 ? "" : text(" at byte ", offset);
  fail_at_file(code, path, text(what, " ", path, at, ": ", reason_of(reason)), offset);
}

void fail_file(const char* what, const std::string& path, int reason, int64_t offset) {
  fail_file(reason == ENOENT ? Code::not_found : Code::io, what, path, reason, offset);
}

}  // namespace st::os
