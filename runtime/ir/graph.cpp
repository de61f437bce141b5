#include "ir/graph.h"

#include "base/error.h"

namespace st {

int64_t Type::bytes() const {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.elements(), bytes_of(dtype), &bytes), "type: ", shape, " of ", dtype,
        " has more bytes than fit in 64 bits");
  return bytes;
}

SlotId Graph::slot_behind(Value v) const {
  while (nodes[static_cast<size_t>(v.node)].op == Op::reshape) v = nodes[static_cast<size_t>(v.node)].in[0];
  const Node& source = nodes[static_cast<size_t>(v.node)];
  return source.op == Op::load ? source.reads[0] : -1;
}

}  // namespace st
