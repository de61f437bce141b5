// Recompute (gradient checkpointing; Chen et al. 2016, arXiv:1604.06174): what backward needs of a scope is made again, not kept.
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
  int64_t stash_bytes = 0;  // saved: what is not kept any more, less what is kept for its sake
  OpCost cost;              // of what runs again, once a micro-batch
  int32_t nodes = 0;        // that run again
};

/// What recompute() saves and costs. Bytes are of the stash slots, each rounded up as memory_plan places it.
struct RecomputeRecord {
  int64_t stash_before = 0, stash_after = 0;
  std::vector<RecomputedScope> scopes;  // in the order of the program's regions; those of which nothing runs again are left out

  OpCost cost() const;
};

/// Each of `scopes` (boundary scopes; one inside another is part of it) keeps only the values that cross its boundary. Of the others,
/// those that backward reads are made again there: the forward nodes behind them are repeated just before the first of them is read, and
/// what they make is gone with its last reader. A scope that was entered several times is one.
///
/// Bitwise the same results: a repeated node has the operands, the counters of its dropout and the scope of the first, so fuse() makes the
/// same arithmetic of it. What it would not be made the same of is kept: a product with several readers, one of which adds a bias. So is
/// what a host's op makes: its forward is called once, since nobody promised that it is a pure function; and the gradient that fuse_loss()
/// has put in the place of the logits, which backward reads first.
/// With libraries of others (tune) a product's kernel is the fastest as measured, here and there: those bits are not promised.
///
/// Call after autodiff(), on a program with a forward and a backward section. Slots from before autodiff() keep their numbers.
RecomputeRecord recompute(Program& program, std::span<const RegionId> scopes);

}  // namespace st
