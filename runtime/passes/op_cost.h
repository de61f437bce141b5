// What an op costs, from its shapes alone: enough to tell which of two ways does less, on no machine in particular.
#pragma once

#include "ir/program.h"

namespace st {

struct OpCost {
  double flops = 0;  // of products and attention; a multiplication and its addition are two
  double bytes = 0;  // that all other ops read and write

  OpCost& operator+=(const OpCost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
  /// In flops: a core makes about as many while it moves a byte to and from memory.
  double weight() const { return flops + 8 * bytes; }
};

/// Of one run on a bound program. Views and loads cost nothing. A host's op costs what it reads and writes.
OpCost cost_of(const Graph& graph, const Node& node);

}  // namespace st
