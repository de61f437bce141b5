// Files that are not as they were written.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace st {

/// Code::corrupt, "<file>: tensor <tensor>: <message>", with all of them as data too. No tensor: empty.
[[noreturn]] void throw_corrupt(std::string_view file, std::string_view tensor, std::string_view message, int64_t offset = -1);

/// Calls read(). What it throws as invalid_argument is corrupt: of text in a file nobody is to blame but the file. `tensor` is looked at
/// then.
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
