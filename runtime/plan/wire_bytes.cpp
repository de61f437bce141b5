#include "plan/wire_bytes.h"

#include <algorithm>

#include "ir/cuts.h"

namespace st {
namespace {

/// The counter for an op's bytes; null: the op is not a counted collective.
int64_t* place_of(Op op, WireBytes& wire) {
  switch (op) {
    case Op::reduce_scatter:
      return &wire.reduce_scatter;
    case Op::all_gather:
      return &wire.all_gather;
    case Op::rank_sums:
      return &wire.rank_sums;
    case Op::gather_squares:
      return &wire.gather_squares;
    default:
      return nullptr;
  }
}

class Payload {
 public:
  explicit Payload(const Program& program) : program_(program) {}

  /// Bytes that this rank sends for a node to which the first `contributors` ranks contribute terms.
  int64_t of(int32_t section, const Node& node, int64_t contributors) const {
    const int64_t others = program_.mesh.data - 1;
    switch (node.op) {
      case Op::reduce_scatter:
        return program_.rank < contributors ? foreign_gradients(program_.sections[static_cast<size_t>(section)].graph, node) : 0;
      case Op::all_gather:
        return others * own_shards(node);
      case Op::rank_sums:
        return others * std::ssize(node.in) * bytes_of(DType::f64);
      case Op::gather_squares:
        return others * own_blocks(node) * bytes_of(DType::f64);
      default:
        return 0;
    }
  }

 private:
  int64_t foreign_gradients(const Graph& graph, const Node& node) const {
    const Ints& parameters = node.attrs.ints("parameters");
    int64_t sum = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Type& gradient = graph.type(node.in[i]);
      sum += (gradient.shape.elements() - own_elements(static_cast<SlotId>(parameters[i]))) * bytes_of(gradient.dtype);
    }
    return sum;
  }

  int64_t own_shards(const Node& node) const {
    int64_t sum = 0;
    for (const SlotId written : node.writes) {
      const Slot& slot = program_.slot(written);
      sum += own_elements(slot.role == Role::parameter ? written : slot.of) * bytes_of(slot.type.dtype);
    }
    return sum;
  }

  int64_t own_blocks(const Node& node) const {
    int64_t sum = 0;
    for (const int64_t parameter : node.attrs.ints("parameters")) sum += norm_blocks(own_elements(static_cast<SlotId>(parameter)));
    return sum;
  }

  int64_t own_elements(SlotId parameter) const { return piece_elements(program_, parameter, program_.rank); }

  const Program& program_;
};

}  // namespace

WireBytes wire_bytes(const Plan& plan, int64_t micro_batches) {
  const Program& program = plan.program;
  const int64_t ranks = program.mesh.data;
  const Payload payload(program);
  WireBytes wire;
  for (const Instruction& at : plan.instructions) {
    const Node& node = program.sections[static_cast<size_t>(at.section)].graph[at.node];
    int64_t* const bytes = place_of(node.op, wire);
    if (bytes == nullptr) continue;
    if (gathers_copies(program, node)) {
      wire.copies += payload.of(at.section, node, ranks);
      continue;
    }
    const bool once_a_step = node.when == When::last;
    const int64_t contributors = std::clamp<int64_t>(micro_batches - (once_a_step ? 0 : at.micro_batch * ranks), 0, ranks);
    *bytes += payload.of(at.section, node, contributors);
    ++wire.collectives;
  }
  return wire;
}

}  // namespace st
