#include "checkpoint/corrupt.h"

namespace st {

void throw_corrupt(std::string_view file, std::string_view tensor, std::string_view message, int64_t offset) {
  Error error(Code::corrupt, text(file, tensor.empty() ? "" : ": tensor ", tensor, ": ", message));
  error.place.file = file;
  error.place.tensor = tensor;
  error.place.offset = offset;
  throw error;
}

}  // namespace st
