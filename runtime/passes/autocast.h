// Mixed precision: products in 16 bits, sums and everything that needs range or digits in fp32, over fp32 master weights.
#pragma once

#include <span>

#include "ir/program.h"

namespace st {

/// Gives the forward pass 16-bit values where they pay, as torch.autocast does: matmul, linear and attention take operands of type `low`
/// and sum in fp32; norms, softmax, losses, reductions, exp, log, pow and the host's ops compute in fp32; what stands between takes what
/// comes, and fp32 where both come. A bias added to a 16-bit product is rounded as the product is.
///
/// Unlike there, a product that only fp32 values wait for (the residual stream, a loss, an output) is not rounded to 16 bits, nor is the
/// gradient that a product makes of something cast from fp32: above all each weight's. Parameters stay fp32, and so do their gradients and
/// moments; what products take of them are working copies, made in each micro-batch or, `when` first, in a step's first. Inputs and outputs
/// keep their types. Changes numerics. Values that are not fp32 stay as they are; low fp32 changes nothing. Call before autodiff().
///
/// All that lies in one of `wide` scopes, or in a scope within it, computes in fp32, as under torch.autocast(enabled=False) with its inputs
/// cast; what comes out of it is fp32.
void autocast(Program& program, DType low, When when = When::every, std::span<const RegionId> wide = {});

}  // namespace st
