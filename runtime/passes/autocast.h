// Mixed precision: products in 16 bits; sums and everything that needs range or precision in fp32, over fp32 master weights.
#pragma once

#include <span>

#include "ir/program.h"

namespace st {

/// Uses 16-bit values in the forward pass, like torch.autocast. Changes numerics. Call before autodiff().
/// - 16 bits: matmul, linear and attention take operands of type `low` and sum in fp32. A bias added to a 16-bit product is rounded too.
/// - fp32: norms, softmax, losses, reductions, exp, log, pow and host ops.
/// - Other ops use their operands' type, or fp32 if the types are mixed.
/// - `wide`: these scopes, nested ones included, compute in fp32 and give fp32 results, like torch.autocast(enabled=False) on cast inputs.
/// - `residual`: fp32, or `low` for a residual stream of 16 bits, as Megatron-LM has it without --fp32-residual-connection: embeddings read
///   the working copy of their weight, norms take and give 16 bits where x has them (gamma, beta and the row statistics stay fp32), and a
///   parameter beside 16-bit operands takes their type. The gradients of these values have 16 bits too.
/// - Unchanged: the types of inputs and outputs, values that are not fp32; everything if `low` is fp32.
///
/// Unlike torch.autocast, it does not round to 16 bits a product that only fp32 values use (the residual stream, a loss, an output), nor a
/// product's gradient of a value cast from fp32, such as every weight's. Parameters, their gradients and moments stay fp32; products use
/// 16-bit working copies of parameters, made in each micro-batch or, with `when` first, in a step's first one.
void autocast(Program& program, DType low, When when = When::every, std::span<const RegionId> wide = {}, DType residual = DType::f32);

}  // namespace st
