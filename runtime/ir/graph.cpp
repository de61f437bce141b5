#include "ir/graph.h"

#include "base/error.h"

namespace st {

int64_t Type::bytes() const {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.elements(), bytes_of(dtype), &bytes), "type: ", shape, " of ", dtype,
        " has more bytes than fit 64 bits");
  return bytes;
}

}  // namespace st
