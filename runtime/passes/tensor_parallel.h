// Tensor parallelism: splits a model's products among the ranks along the tensor axis.
#pragma once

#include "ir/program.h"

namespace st {

/// Leaves this rank's part of the forward section: program.tensor_rank of program.mesh.tensor ranks, which have the same rows. Values and
/// parameters have the shapes of their pieces; their layouts along the tensor axis say what the pieces are of.
/// - Pairs of products (split_products): each rank has columns of the first weight and rows of the second, with its heads of attention
///   and its part of the hidden values between them; the second product is a sum over the ranks (Megatron-LM, Shoeybi et al., 2019).
/// - Between the pairs each rank has its rows, 1 / ranks of the tokens: norms, residuals, dropout, other products and the loss
///   (sequence parallelism, Korthikanti et al., 2022). Where the rows do not divide evenly, and for ops that need all rows, all ranks
///   compute the same.
/// - A rank's products have exactly 1 / ranks of the arithmetic where rows divide evenly.
/// Within rounding of the results on one rank: sums over columns are of `ranks` parts. Bitwise alike on all ranks that have the same piece,
/// and at any number of data ranks and stages. Outputs are dropped, a training step does not read them; output slots (seed_outputs) have
/// whole values on every rank.
/// Call before autodiff(), and end_tensor_parallel() after it. `like`, and what it throws, as of split_products().
void tensor_parallel(Program& program, const Program* like = nullptr);

/// Removes the nodes that only autodiff() reads.
void end_tensor_parallel(Program& program);

}  // namespace st
