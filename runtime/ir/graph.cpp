#include "ir/graph.h"

#include "base/error.h"

namespace st {

int64_t Type::bytes() const {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.elements(), bytes_of(dtype), &bytes), "type: ", shape, " of ", dtype,
        " has more bytes than fit in 64 bits");
  return bytes;
}

MeshAxis axis_of(const Node& collective) {
  if (is_of_values(collective.op)) return MeshAxis::tensor;
  if (collective.op == Op::send || collective.op == Op::receive) return MeshAxis::stage;
  const std::string& name = collective.attrs.word("axis");
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::tensor, MeshAxis::stage})
    if (name == name_of(axis)) return axis;
  return MeshAxis::all;
}

const Node* Graph::load_behind(Value v) const {
  while (nodes[static_cast<size_t>(v.node)].op == Op::reshape) v = nodes[static_cast<size_t>(v.node)].in[0];
  const Node& source = nodes[static_cast<size_t>(v.node)];
  return source.op == Op::load ? &source : nullptr;
}

SlotId Graph::slot_behind(Value v) const {
  const Node* const load = load_behind(v);
  return load == nullptr ? -1 : load->reads[0];
}

}  // namespace st
