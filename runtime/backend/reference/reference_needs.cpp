// The needs of the reference's kernels: copies and sums as doubles.
#include <algorithm>

#include "backend/needs.h"
#include "ir/piece_update.h"

namespace st {
namespace {

int64_t elements(const Type& type) { return type.shape.elements(); }

/// X and G twice.
int64_t muon_doubles(const Shape& matrix) {
  const int64_t side = std::min(matrix[0], matrix[1]);
  return 2 * (matrix.elements() + side * side);
}

int64_t doubles(Op op, Types in, Types out, const Attrs& attrs) {
  switch (op) {
    case Op::attention:  // a row of probabilities
      return in[1].shape[1];
    case Op::attention_backward:  // the same, their gradients, and those of keys and values
      return 2 * in[1].shape[1] + elements(in[1]) + elements(in[2]);
    case Op::embedding_backward:
    case Op::gather_backward:
      return elements(out[0]);
    case Op::linear:  // a row of x, the weight
      return in[0].shape.last() + elements(in[1]);
    case Op::matmul: {  // one matrix of each
      const Shape &a = in[0].shape, &b = in[1].shape;
      return a[a.rank() - 2] * a.last() + b[b.rank() - 2] * b.last();
    }
    case Op::muon:
      return muon_doubles(in[0].shape);
    case Op::muon_step:
      return muon_doubles(whole_of_directions(in[0].shape, attrs));
    case Op::adafactor_step:
      return elements(in[0]);
    default:
      return 0;
  }
}

}  // namespace

const DeviceNeeds reference_needs = {
    [](const MachineProfile&, Op op, Types in, Types out, const Attrs& attrs) { return doubles(op, in, out, attrs) * 8; }};

}  // namespace st
