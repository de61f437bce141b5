// Recompute (gradient checkpointing; Chen et al. 2016, arXiv:1604.06174): backward recomputes the values of a scope instead of keeping
// them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "passes/op_cost.h"

namespace st {

struct RecomputedScope {
  RegionId region = 0;
  std::string name;
  int64_t stash_bytes = 0;  // net saving: values no longer kept, minus values kept to recompute them
  OpCost cost;              // of the repeated nodes, per micro-batch
  int32_t nodes = 0;        // repeated nodes
};

/// Savings and cost of recompute(). Bytes count the stash slots, rounded up as memory_plan places them.
struct RecomputeRecord {
  int64_t stash_before = 0, stash_after = 0;
  std::vector<RecomputedScope> scopes;  // in the order of the program's regions, without scopes in which nothing is repeated

  OpCost cost() const;
};

/// Each of `scopes` (boundary scopes; a nested one is part of the outer) keeps only the values that cross its boundary. Backward recomputes
/// the others that it reads: it repeats the forward nodes just before the first such value is read, and drops each value after its last
/// reader. A scope entered several times counts as one. Call after autodiff(), on a program with a forward and a backward section. Slots
/// from before autodiff() keep their numbers.
///
/// Bitwise the same results: a repeated node has the original's operands, dropout counters and scope, so fuse() makes the same arithmetic
/// of it. External libraries (tune) are an exception: each product may get another kernel by measurement. Values that are kept all the
/// same:
/// - a product with several readers of which one adds a bias, because fuse() would treat the repeated one differently
/// - results of host ops: forward is called once, because it may not be a pure function
/// - the gradient that fuse_loss() stores instead of the logits, which backward reads first
RecomputeRecord recompute(Program& program, std::span<const RegionId> scopes);

}  // namespace st
