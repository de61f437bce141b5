// Fusion of a loss with its gradient, across the sections.
#pragma once

#include "ir/program.h"

namespace st {

/// cross_entropy becomes fused_cross_entropy where backward reads its logits for nothing but their gradient, and where what the loss is
/// seeded with is known before: a constant, by the loss scale. The stash then holds the gradient in the place of the logits, rounded as the
/// cast behind it asks for, and no lse. Bitwise the same results; the logits go through memory once each way instead of twice.
void fuse_loss(Program& program);

}  // namespace st
