// The work of one instruction, from types alone: what predicted times are made of.
#pragma once

#include <string>

#include "plan/plan.h"

namespace st {

struct OpWork {
  double flops = 0;        // of products and attention; a multiply-add counts as two
  double bytes = 0;        // that a kernel reads and writes; that a collective or message sends from this rank, without headers
  double activations = 0;  // elements of an activation that a product applies, or its gradient
};

/// The work of an instruction in a step of so many full micro-batches over all data ranks. An instruction that waits (await, release,
/// receive) has none.
OpWork work_of(const Plan& plan, const Instruction& at, int64_t micro_batches);

/// The name under which a machine keeps the time of such instructions: the op, the element type of its first operand, and for products how
/// the operands lie: "fused_linear.bf16.t.packed".
std::string rate_name(const Plan& plan, const Instruction& at);

/// Bytes of all memory that a rank of this plan needs on its device.
int64_t memory_of(const Plan& plan);

/// Arithmetic of this rank's products and attention in a step: what the model needs, and what recomputation repeats with it.
double flops_of(const Plan& plan);

}  // namespace st
