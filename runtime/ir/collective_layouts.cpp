// Layout rules of collectives of values along the tensor axis, and of what else depends on which rank has which part of a tensor: norms,
// and updates of pieces.
#include "ir/layout_case.h"

namespace st::layout_rule {
namespace {

/// The other axes are left alone.
Layouts along_tensor(const Case& on, AxisLayout from, AxisLayout to, std::string_view why) {
  if (on.axis != MeshAxis::tensor) return {on.in(0)};
  if (!(on.in(0) == from)) refuse(on, why);
  return {to};
}

}  // namespace

Layouts tensor_gather(const Case& on) { return along_tensor(on, sharded(0), kReplicated, "x must be sharded by rows"); }
Layouts tensor_scatter(const Case& on) { return along_tensor(on, kPartial, sharded(0), "x must be partial"); }
Layouts tensor_sum(const Case& on) { return along_tensor(on, kPartial, kReplicated, "x must be partial"); }
Layouts tensor_share(const Case& on) { return along_tensor(on, kReplicated, kReplicated, "x must be replicated"); }
Layouts tensor_part(const Case& on) { return along_tensor(on, kReplicated, sharded(0), "x must be replicated"); }

// Each rank has the squares of its own blocks; of its pieces of tensors, its part of their sums.
Layouts squares(const Case& on) {
  bool is_of_shards = false, is_of_pieces = false;
  for (size_t i = 0; i < on.inputs(); ++i) {
    if (on.is(i, Kind::flat))
      is_of_shards = true;
    else if (on.is_sharded(i))
      is_of_pieces = true;
    else
      need_replicated(on, i);
  }
  if (is_of_pieces) return every_output(on, kPartial);
  return every_output(on, is_of_shards ? sharded(0) : kReplicated);
}

Layouts tensor_squares(const Case& on) {
  if (!on.is_partial(0)) need_replicated(on, 0);
  return {on.in(0)};
}

// Updates of pieces: of a piece along the tensor axis, rows of what the ranks gather, or terms of sums over them.
Layouts piece_rows(const Case& on) { return every_output(on, on.axis == MeshAxis::tensor && on.is_sharded(0) ? sharded(0) : kReplicated); }
Layouts piece_terms(const Case& on) { return every_output(on, on.axis == MeshAxis::tensor && on.is_sharded(0) ? kPartial : kReplicated); }

// The norm of shards: the executor combines the subtrees of the ranks that own them, so every rank gets the whole norm.
Layouts reduce_all(const Case& on) {
  for (size_t i = 0; i < on.inputs(); ++i)
    if (on.is_partial(i)) refuse(on, kReduceFirst);
  return every_output(on, kReplicated);
}

}  // namespace st::layout_rule
