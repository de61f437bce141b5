// Errors for files that are not as they were written.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace st {

/// Throws corrupt, "<file>: tensor <tensor>: <message>", with file, tensor and offset also in error.place. `tensor` may be empty.
[[noreturn]] void throw_corrupt(std::string_view file, std::string_view tensor, std::string_view message, int64_t offset = -1);

/// Calls read() and rethrows its invalid_argument as corrupt, because the text comes from the file and not from the caller. `tensor` is
/// read after the throw.
template <class Read>
void read_or_corrupt(std::string_view file, const std::string& tensor, const Read& read) {
  try {
    read();
  } catch (Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    Error corrupt(Code::corrupt, error.message());
    corrupt.place.file = file;
    corrupt.place.tensor = tensor;
    corrupt.place.offset = error.place.offset;
    throw corrupt;
  }
}

}  // namespace st
