// Fuses a loss with its gradient, across sections.
#pragma once

#include "ir/program.h"

namespace st {

/// cross_entropy becomes fused_cross_entropy if backward reads its logits only for their gradient and the loss's seed is known in forward:
/// a constant, times the loss scale. The stash then holds the gradient instead of the logits, rounded by the cast that follows it, and no
/// lse. Bitwise the same results; the logits are read and written once instead of twice. vocabulary_cross_entropy of ranks along the tensor
/// axis needs what the ranks exchange: its backward moves to forward instead, next to it.
void fuse_loss(Program& program);

}  // namespace st
