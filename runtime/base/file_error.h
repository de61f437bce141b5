// Errors of file operations.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace st::os {

/// Throws `message` with path and offset as the error's place; offset -1: none.
[[noreturn]] void fail_at_file(Code code, const std::string& path, std::string message, int64_t offset = -1);

/// Throws "<what> <path> at byte <offset>: <reason of errno>", with the same place.
[[noreturn]] void fail_file(Code code, const char* what, const std::string& path, int reason, int64_t offset = -1);

/// The same: not_found when nothing is at that path, else io.
[[noreturn]] void fail_file(const char* what, const std::string& path, int reason, int64_t offset = -1);

}  // namespace st::os
