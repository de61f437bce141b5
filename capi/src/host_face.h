// Ops as a host meets them: which rows of ops.def a model may use, and how their calls look. One answer for st_graph_op, st_features and
// the generator of scaletrain/ops.h.
#pragma once

#include "ir/op.h"

namespace st::capi {

/// A model may use every op that autodiff knows what to do with; the others are written by passes.
bool is_for_models(Op op);

/// The op's row without what the runtime fills in itself: a dropout's counters, site and seed, a product's tiles.
OpInfo host_face(Op op);

}  // namespace st::capi
