// The gradient norm of a step's first micro-batch; with that of the whole step it gives the gradient noise scale.
#pragma once

#include "ir/program.h"

namespace st {

/// At the end of backward, in the first micro-batch only, writes the report slots "first_norm" (f64, over all gradients, with the uses of a
/// tied parameter added) and "first_loss_count" (f64). Reads each gradient once more; the sum of a tied one takes a gradient's size of
/// activations. Call after accumulate(), before data_parallel() or zero_shard(), which sum the count in forward, and before clip().
///
/// With several ranks (program.mesh) only the first one has that micro-batch and all its gradients. It computes the norm, bitwise equal to
/// one rank's, and one more number is exchanged to give it to the others. (McCandlish's method for ranks, the mean over their norms, has
/// less variance, but the estimate and a checkpoint of it would depend on the number of ranks.)
///
/// On a stage of a pipeline or a tensor rank, backward keeps the first micro-batch's sum of squares of each tensor, and of a tied parameter
/// whose uses are in several sections the gradients; share_first_norm() makes the norm of them.
void first_norm(Program& program);

/// In the update, after clip(): the norm and the count on all stages and tensor ranks, bitwise equal to those of one stage.
void share_first_norm(Program& program);

}  // namespace st
