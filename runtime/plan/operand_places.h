// Which micro-batches of a node have their operands at the same places.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace st {

/// Operands move from one micro-batch to the next only in the buffers of the stash.
class OperandPlaces {
 public:
  explicit OperandPlaces(const Plan& plan);

  /// Equal for the instructions of a node, the releases of a send too, whose operands are at the same places; counted from 0.
  int32_t of(const Instruction& at) const {
    const Buffers& buffers = buffers_[static_cast<size_t>(of_node_[static_cast<size_t>(at.section)][static_cast<size_t>(at.node)])];
    return buffers.number[static_cast<size_t>(at.micro_batch)];
  }
  /// How many such numbers a node has.
  int32_t count(int32_t section, int32_t node) const {
    return buffers_[static_cast<size_t>(of_node_[static_cast<size_t>(section)][static_cast<size_t>(node)])].count;
  }

 private:
  /// A set of buffers in which nodes have operands.
  struct Buffers {
    int32_t count = 0;
    std::vector<int32_t> number;  // by micro-batch
  };
  std::vector<Buffers> buffers_;
  std::vector<std::vector<int32_t>> of_node_;  // by section and node
};

}  // namespace st
