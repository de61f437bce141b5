// The gradient norm of a step's first micro-batch, which beside that of the whole step tells the gradient noise scale.
#pragma once

#include "ir/program.h"

namespace st {

/// At the end of backward, in the first micro-batch alone: report slots "first_norm" (f64, over all gradients, the uses of a tied parameter
/// added up) and "first_loss_count" (f64). Reads each gradient once more; the sums of a tied one are a gradient's size of activations.
///
/// Of several ranks (program.mesh) the first alone has that micro-batch, and has all of its gradients when it has made them: it takes the
/// norm, whose bits are therefore those of one rank, and one number more is exchanged, which the others get. (McCandlish's own way for
/// ranks, the mean over their norms, is of less variance; but then the estimate, and what a checkpoint keeps of it, would depend on their
/// number.) Call after accumulate(), before data_parallel() or zero_shard(), which sum the count in forward, and clip().
void first_norm(Program& program);

}  // namespace st
