// The cost of an op, from its shapes alone: enough to compare two alternatives independently of the machine.
#pragma once

#include "ir/program.h"

namespace st {

struct OpCost {
  double flops = 0;  // of products and attention; a multiply-add counts as two
  double bytes = 0;  // read and written by all other ops

  OpCost& operator+=(const OpCost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
  /// The cost in flops; a core does about 8 in the time in which it moves a byte to or from memory.
  double weight() const { return flops + 8 * bytes; }
};

/// The cost of one run on a bound program. Views and loads cost nothing; a host op costs the bytes that it reads and writes.
OpCost cost_of(const Graph& graph, const Node& node);

}  // namespace st
