// The host's view of the ops: which rows of ops.def a model may use, and the form of their calls. Used by st_graph_op, st_features and the
// generator of scaletrain/ops.h.
#pragma once

#include "ir/op.h"

namespace st::capi {

/// A model may use every op that autodiff supports; passes create the others.
bool is_for_models(Op op);

/// The op's row without what the runtime fills in: a dropout's counters, site and seed, a product's tiles.
OpInfo host_face(Op op);

}  // namespace st::capi
